/* SPDX-License-Identifier: Apache-2.0 */
/* A shared object that dgc did not make. */
int unrelated(void) { return 7; }
