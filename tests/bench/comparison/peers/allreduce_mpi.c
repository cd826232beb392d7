// SPDX-License-Identifier: Apache-2.0
// All-reduce of f32 in place by MPI: the median of rounds of many, as collectives_bench measures it.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  size_t bytes = strtoull(argv[1], NULL, 10);
  float *data = calloc(bytes, 1);
  size_t perRound = (1u << 20) / bytes;
  perRound = perRound < 1 ? 1 : perRound > 200 ? 200 : perRound;
  int rounds = bytes > 1u << 22 ? 30 : 200;
  double times[205];
  for (int round = 0; round < rounds + 5; ++round) {
    double begin = MPI_Wtime();
    for (size_t k = 0; k < perRound; ++k)
      MPI_Allreduce(MPI_IN_PLACE, data, (int)(bytes / 4), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    times[round] = (MPI_Wtime() - begin) * 1e6 / (double)perRound;
  }
  qsort(times + 5, (size_t)rounds, sizeof *times, compare);
  if (rank == 0)
    printf("{\"bytes\": %zu, \"median_us\": %.3f}\n", bytes, times[5 + rounds / 2]);
  free(data);
  MPI_Finalize();
  return 0;
}
