// SPDX-License-Identifier: Apache-2.0
#include "tools/dgrun/Flags.h"
#include "tools/FlagChecks.h"

#include <fmt/format.h>

#include <set>

namespace dg::dgrun {

using tools::finiteNumber;
using tools::wholeNumber;

static constexpr int exitUsage = 2;
static constexpr int64_t maxThreads = 1024;

static void addWhere(CLI::Option_group &app, Flags &flags) {
  app.add_option(
         "-n", flags.ranks,
         "ranks that this dgrun starts; where those of all nodes, each with the same -n, are K times the plan's, K "
         "replicas of the plan share the micro-batches of each batch; default: as many as the plan has, divided among "
         "the nodes; under srun and mpirun: 1")
      ->check(wholeNumber());
  app.add_option(
      "--deal", flags.deal,
      "which replica gets how many of a batch's micro-batches: even, balanced (the slower one fewer, as "
      "measured in the first steps and at the ends of epochs), or their numbers, as 4/2/2, or 3/3/2,120:4/2/2 "
      "with others after 120 steps; default: even");
  auto *nodes = app.add_option("--nnodes", flags.nodes,
                               "nodes of the job, each with its own dgrun; all need the secret in the file "
                               "DG_SECRET_FILE or in DG_SECRET; default: 1")
                    ->check(wholeNumber());
  auto *rank = app.add_option("--node-rank", flags.nodeRank,
                              "which of the nodes this is, from 0, where the others meet; needed with --nnodes")
                   ->check(wholeNumber(0))
                   ->needs(nodes);
  app.add_option("--rdzv-endpoint", flags.rendezvous,
                 "HOST:PORT where node 0 listens; default on node 0: every interface, a free port, which is printed")
      ->needs(rank);
  app.add_option("--rdzv-timeout", flags.rendezvousSeconds, "seconds that nodes wait for each other; default: 300")
      ->check(finiteNumber(false));
  auto *secure = app.add_flag("--secure", flags.secure,
                              "authenticate and encrypt messages between hosts with keys that follow from the job's "
                              "secret (TLS 1.3); default: on with --nnodes, off under srun and mpirun");
  app.add_flag("--trust-fabric", flags.trustFabric,
               "send messages between hosts in the clear, through UCX: who reaches the hosts over the network can read "
               "and change the job; default: on under srun and mpirun, off with --nnodes")
      ->excludes(secure);
  app.add_option("--threads", flags.threads, "threads per rank; default: the host's cores divided among its ranks")
      ->check(wholeNumber(1, maxThreads));
  app.add_option(
      "--target", flags.target,
      "which of the targets that the package was compiled for (dgc --target a,b) the kernels are of; default: "
      "the best that all ranks can run");
  app.add_option(
      "--require-signature", flags.trustedKeys,
      "PUB.pem: run the job only if one of these Ed25519 public keys signed it (dgc --sign); default: any job");
  app.add_flag(
      "--dry-run", flags.dryRun,
      "run nothing: check that all ranks reach each other, and print by which transport and address; default: off");
  app.add_option("--timeout", flags.timeoutSeconds,
                 "seconds without a byte or a sign of life after which ranks and nodes give each other up; a long wait "
                 "is reported before; launchers need at least 5; default: 30")
      ->check(finiteNumber(false));
}

static void addData(CLI::Option_group &app, Flags &flags) {
  app.add_option(
         "--data", flags.data,
         "ARGUMENT=SOURCE: IDX(.gz), .npy, .npz[:NAME], .safetensors[:NAME], token files .u16/.u32 (:+1 for the "
         "tokens that follow), - for one of them on stdin; a folder of class folders with .jpg and .png (:class for "
         "the "
         "numbers of the classes), images, .tar:PART (npy, cls, txt, jpg, png, json:FIELD), .csv:COLUMN or "
         ":FIRST..LAST; of files on http://, https://, s3:// and hdfs:// too; shards separated by commas, as "
         "{000..099}, or by * (a suffix at the end is of all of them); or "
         "randn:1000x10, randint:10:1000; shapes must match, or end with :nhwc (channels last in the file) or "
         ":reshape (its elements in their order), images with :resize, :rgb or :gray; default: none")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--eval-data", flags.evalData,
                 "ARGUMENT=SOURCE: evaluated after every epoch, or as --eval-every says; default: none")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--validation", flags.validation,
                 "this part of --data, as 0.1, is held out and evaluated instead of trained on; drawn by the seed; "
                 "default: 0, or the checkpoint's")
      ->check(finiteNumber(true));
  app.add_option(
         "--normalize", flags.normalize,
         "ARGUMENT=MEAN,STD, or MEAN,…/STD,… with one of each for each channel, the first dimension of a sample; after "
         "bytes were scaled to [0,1]; default: 0,1")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--eval-batch", flags.evalBatch, "samples evaluated at once; default and most: the plan's")
      ->check(wholeNumber());
  app.add_option("--eval-every", flags.evalEvery, "500steps or 2epochs; default: 1epochs");
  app.add_flag("--evaluate", flags.evaluate,
               "evaluate on --eval-data with the parameters of --resume, and nothing else; default: off");
  auto *buffer = app.add_option("--shuffle-buffer", flags.shuffleBuffer,
                                "shuffle windows of that many samples, and the samples in each; default: the whole set")
                     ->check(wholeNumber());
  app.add_flag("--no-shuffle", flags.noShuffle, "take the samples in the order of the files; default: off")
      ->excludes(buffer);
  app.add_option("--data-cache", flags.dataCache,
                 "folder where files of other machines are kept and looked for; default: none");
  app.add_option(
         "--skip-bad", flags.skipBad,
         "leave out samples that cannot be read, at most so many; all are read once before the run; default: the "
         "first one ends it")
      ->check(wholeNumber(0));
  app.add_option("--prefetch", flags.prefetch,
                 "steps whose data are read ahead; default: 2 where samples are decoded (images, archives), else 0")
      ->check(wholeNumber(0, 64));
  app.add_option("--readers", flags.readers,
                 "threads of each rank that read ahead; default: the cores that its --threads leave, 1 to 8")
      ->check(wholeNumber(1, 256));
  app.add_flag("--drop-last", flags.dropLast, "leave out a last, smaller batch; default: it is trained too");
  app.add_option("--input", flags.input, "ARGUMENT=@FILE: what to infer from, or - for stdin; default: none")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--output", flags.output,
                 "OUTPUT=@FILE.npy: where results go; of one -, stdout, with the report on stderr; default: none")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

static void addLength(CLI::Option_group &app, Flags &flags) {
  auto *epochs = app.add_option("--epochs", flags.epochs, "epochs, those before --resume included; default: 1")
                     ->check(wholeNumber());
  app.add_option("--steps", flags.steps, "steps, those before --resume included; default: as many as --epochs has")
      ->check(wholeNumber())
      ->excludes(epochs);
  app.add_option("--lr", flags.learningRate, "learning rate; default: the checkpoint's, or the one that dgc stored")
      ->check(finiteNumber(true));
  app.add_option(
      "--lr-schedule", flags.schedule,
      "parts joined by '+', each of so many steps= or epochs=: warmup:steps=500+cosine:steps=10000; constant, "
      "linear, cosine (to=FACTOR), polynomial (power=), one-cycle, step:every=EPOCHS,gamma=FACTOR or "
      "every=500steps, plateau:factor=0.1,patience=10 on the evaluated loss; default: constant, or the "
      "checkpoint's");
  app.add_option(
      "--stop-when", flags.stopWhen,
      "eval.loss:patience=5[,min_delta=0.001]: end once 5 evaluations in a row were no better than the best; "
      "also of eval.accuracy, eval.perplexity and, after dgc --metrics, of eval.f1, eval.top5 (any number), eval.auc, "
      "eval.mse and eval.mae; default: train to the end");
  app.add_option("--seed", flags.seed, "of initial values, shuffles and random data; default: 0, or the checkpoint's")
      ->check(wholeNumber(0, INT64_MAX));
}

static void addFiles(CLI::Option_group &app, Flags &flags, CLI::Option *&resume) {
  app.add_option("--checkpoint", flags.checkpoint, "folder for checkpoints; one is written at the end; default: none");
  app.add_option("--checkpoint-every", flags.checkpointEvery, "10epochs or 500steps; default: only at the end");
  app.add_option("--keep", flags.keep, "only so many of the latest checkpoints stay in the folder; default: all")
      ->check(wholeNumber());
  app.add_option("--keep-best", flags.keepBest,
                 "eval.accuracy, eval.loss or another metric of --stop-when: a new best is saved at once and stays, "
                 "with a link DIR/best "
                 "to it; default: none");
  app.add_option(
         "--save-timeout", flags.saveSeconds,
         "seconds that ranks may take to save and leave after SIGTERM or Ctrl-C, as many as the batch system "
         "gives before it kills, default: 25; and in which nothing of a save may move before the run ends, for a "
         "disk that hangs, default: 120")
      ->check(finiteNumber(false));
  app.add_option("--max-lost", flags.maxLost,
                 "a save that fails is tried once more, then the training goes on, until so many saves in a row are "
                 "missing; default: 2")
      ->check(wholeNumber());
  app.add_option("--max-restarts", flags.maxRestarts,
                 "after a rank, a link or a process is lost, start the ranks anew so often without coming to another "
                 "snapshot or checkpoint, and go on from the newest; default: 0")
      ->check(wholeNumber());
  app.add_option("--snapshot-every", flags.snapshotEvery,
                 "50steps or 1epochs: copy what training needs to memory that outlives the ranks, for --max-restarts; "
                 "default: never, so that restarts go on from checkpoints");
  app.add_option("--on-failure", flags.onFailure,
                 "command for the shell of node 0 after every failure, with DG_FAILURE (the message), "
                 "DG_FAILURE_RANK, DG_FAILURE_STEP, DG_FAILURE_CODE and DG_RESTART (which one follows; 0: the job "
                 "ends) in its environment; default: none");
  app.add_option(
      "--verify", flags.verify,
      "check every checkpoint of this folder, or the one that it is, to its last byte, and run nothing; with "
      "a JOB also whether it fits; default: off");
  app.add_option("--export", flags.exportTo,
                 "write the parameters of the checkpoint of --resume DIR, without the state of the optimizer, to this "
                 "safetensors file, as dgc --weights reads it, and run nothing; default: off");
  resume = app.add_option("--resume", flags.resumeFrom,
                          "continue from the latest checkpoint of --checkpoint (begin, if there is none), or of this "
                          "folder; default: off")
               ->expected(0, 1);
  app.add_flag("--resume-older", flags.resumeOlder,
               "where the latest checkpoint cannot be read, go back to the latest that can; default: that is an error")
      ->needs(resume);
  auto *check = app.add_flag(
      "--check-numerics", flags.checkNumerics,
      "stop at the first op that makes a NaN or infinity, and name it; ranks then use one thread; default: off");
  app.add_flag("--allow-nan", flags.allowNan,
               "go on after a loss that is NaN or infinite, and save what it left; default: stop at the first, keeping "
               "the last good checkpoint")
      ->excludes(check);
  app.add_option("--check-replicas", flags.checkReplicas,
                 "every so many steps compare the parameters of ranks that hold the same; default: never")
      ->check(wholeNumber());
  app.add_option("--trace", flags.trace, "write the first 100 steps as JSON for Perfetto; default: none");
  app.add_flag(
      "--profile", flags.profile,
      "print at the end, on stderr, the time of each op, its flops and bytes a second and its share of the peak; "
      "default: off");
  app.add_flag(
      "--probe", flags.probe,
      "measure this host and its links anew, print them as a cluster file for dgc --cluster and keep them for\n"
      "dgc, which plans for them where it is given no other; needs no JOB; default: off");
  auto *json = app.add_flag(
      "--json", flags.json,
      "one JSON object a line on stdout: start, deal, step, epoch, eval, checkpoint, snapshot, straggler, waiting, "
      "silence, recovered, restart, failure, end; default: off");
  app.add_option("--json-every", flags.jsonEvery, "step events only every 100steps or 10s; default: every step")
      ->needs(json);
  app.add_option("--log-every", flags.logEvery,
                 "a line about the step every 100steps or 10s; default: 10s, and on a terminal a bar instead")
      ->excludes(json);
  app.add_option("--log-dir", flags.logDirectory, "folder for TensorBoard's event files; default: none");
}

/// The first flag that is given beside --verify or --export and would mean nothing there, or "".
static std::string findBeside(CLI::App &app, const std::set<std::string> &own) {
  std::set<std::string> allowed = {"--json", "--require-signature", "--target", "JOB"};
  allowed.insert(own.begin(), own.end());
  auto isOther = [&](const CLI::Option *option) {
    return option->count() > 0 && !allowed.contains(option->get_name());
  };
  for (CLI::App *group : app.get_subcommands({}))
    for (const CLI::Option *option : group->get_options())
      if (isOther(option))
        return option->get_name();
  return "";
}

std::optional<int> parseFlags(int argc, char **argv, Flags &flags) {
  CLI::App app(
      "dgrun runs a job that dgc made: trains, evaluates or infers, on all its ranks.\n\n"
      "  dgrun mlp.dgx --data x=randn:1000x10 --data y=randn:1000x1 --epochs 10\n"
      "  dgrun lenet.dgx --data x=train-images-idx3-ubyte.gz --data y=train-labels-idx1-ubyte.gz --checkpoint weights\n"
      "  dgrun model.dgx --input x=@x.npy --output y=@y.npy\n"
      "  srun -N2 -n4 --mpi=pmix dgrun gpt.dgx --data x=tokens.u16 --data y=tokens.u16:+1 --steps 1000\n",
      "dgrun");
  app.footer(
      "Exit codes: 0 done, 1 the run failed otherwise, 2 usage, 65 a file is unreadable or invalid, 69 a rank, a node "
      "or a link was lost, 70 the job itself fails (a loss that is not finite, a crash), 74 what it makes cannot be "
      "written (disk full), 75 stopped and saved, 128+n ended by signal n.\n"
      "Signals: SIGTERM, SIGUSR2 and Ctrl-C save and end, SIGUSR1 saves and goes on; they need --checkpoint.");
  app.set_version_flag("--version", std::string("dgrun ") + DG_VERSION);
  app.add_option("JOB", flags.job, "package that dgc made (JOB.dgx)");
  CLI::Option *resume = nullptr;
  addWhere(*app.add_option_group("Where it runs"), flags);
  addData(*app.add_option_group("Data"), flags);
  addLength(*app.add_option_group("How long, and how fast it learns"), flags);
  addFiles(*app.add_option_group("Checkpoints, checks and what is printed"), flags, resume);
  if (auto code = tools::parseCommandLine(app, {argv + 1, argv + argc}, "dgrun: "))
    return code;
  const std::pair<const char *, std::set<std::string>> idle[] = {
      {"--verify", {"--verify"}}, {"--export", {"--export", "--resume", "--resume-older"}}};
  for (const auto &[flag, own] : idle)
    if (std::string other = app.get_option(flag)->empty() ? "" : findBeside(app, own); !other.empty()) {
      fmt::print(stderr, "dgrun: {}: {} runs nothing; leave one of them out\n", other, flag);
      return exitUsage;
    }
  flags.resume = resume->count() > 0;
  // `dgrun --resume JOB.dgx`: the package is not a folder of checkpoints.
  if (flags.job.empty() && flags.resumeFrom.ends_with(".dgx"))
    flags.job = std::exchange(flags.resumeFrom, "");
  if (flags.job.empty() && flags.verify.ends_with(".dgx")) {
    std::fputs("dgrun: --verify: say which checkpoint: dgrun --verify DIR [JOB.dgx]\n", stderr);
    return exitUsage;
  }
  if (!flags.exportTo.empty() && flags.resumeFrom.empty()) {
    std::fputs("dgrun: --export: say of which checkpoint: --resume DIR\n", stderr);
    return exitUsage;
  }
  if (flags.job.empty() && !flags.probe && flags.verify.empty()) {
    std::fputs("dgrun: expected a package: dgrun JOB.dgx (dgrun --help lists the flags)\n", stderr);
    return exitUsage;
  }
  return std::nullopt;
}

} // namespace dg::dgrun
