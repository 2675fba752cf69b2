/**
 * Slow tests that run by themselves: a neighbour's delay under a heavy load, in seconds (`npm run prove`, on the whole
 * machine), and the planted mistakes that the simulation must notice (`npm test -- canaries`, after a change to it or
 * to the engine).
 */
export const APART: readonly string[] = [
  ...["floods", "joining-leaving", "large-backlog", "many-tenants"].map((name) => `test/faults/${name}.test.ts`),
  "test/simulation/canaries.test.ts",
];
