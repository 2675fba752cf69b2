/** For dispatchers whose jobs are no fallbacks. */
export const NO_HISTORIES = { queue: { job: async () => null }, eventStore: { job: async () => null } };
