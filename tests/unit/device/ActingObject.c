/* SPDX-License-Identifier: Apache-2.0 */
/* What an object of kernels must not have: each of these acts while the object is loaded. */
volatile int dg_test_acted = 0; /* volatile: else a compiler does it beforehand */

#ifdef DG_ACT_constructor
__attribute__((constructor)) void act(void) { dg_test_acted = 1; }
#endif
#ifdef DG_ACT_destructor
__attribute__((destructor)) void act(void) { dg_test_acted = 1; }
#endif
#ifdef DG_ACT_indirect
static void one(void) {}
static void *choose(void) {
  dg_test_acted = 1;
  return (void *)one;
}
void act(void) __attribute__((ifunc("choose")));
#endif
#ifdef DG_ACT_thread_local
__thread int dg_test_of_thread = 1;
#endif
