/** The requested number of processes: in total, or per role beside the main process. */
export type WantedProcesses = { readonly total: number } | { readonly api: number; readonly dispatcher: number };

export interface ProcessPlan<Role extends string> {
  /** The roles of the main process itself, besides keeping the embedded stores. */
  readonly mainRoles: readonly Role[];
  /** Child processes per role. */
  readonly api: number;
  readonly dispatcher: number;
}

export interface PlanOptions<Role extends string> {
  readonly roles: readonly Role[];
  readonly wanted: WantedProcesses;
  /** Whether the main process has stores to keep. */
  readonly hasStores: boolean;
  /** Dispatchers beyond the number of shards have no work. */
  readonly shards: number;
}

/** The default. More processes than this wait for Redis, which works on one core. */
export const PROCESSES_MAX_DEFAULT = 16;

/**
 * Measured CPU time per job and role, µs, of which only the ratio counts; the recorder and the stores each need less. Between two
 * processes of a role, the kernel shares connections and leases share shards.
 */
const COST_US = { api: 45, dispatcher: 120 };

/**
 * Decides which process has which role. The main process keeps the embedded stores, records and follows the mail log;
 * the API is the first role to leave it, because its callers wait. The main process goes on delivering until two others
 * do.
 */
export function planProcesses<Role extends string>(options: PlanOptions<Role>): ProcessPlan<Role> {
  const { roles, wanted, hasStores, shards } = options;
  const hasApi = roles.some((role) => role === "api");
  const hasDispatcher = roles.some((role) => role === "dispatcher");
  const others = roles.filter((role) => role !== "api" && role !== "dispatcher");
  // A main process that only watches the others is not counted.
  const mainWorks = hasStores || others.length > 0;
  const beside = "total" in wanted ? childCount(wanted.total, mainWorks) : null;
  const { api, dispatcher } =
    beside === null || "api" in wanted ? split(wanted) : shareOut(beside, { hasApi, hasDispatcher });
  if (api + dispatcher === 0) return { mainRoles: roles, api: 0, dispatcher: 0 };
  const isListed = !("total" in wanted);
  const mainDelivers = hasDispatcher && (dispatcher === 0 || (!isListed && mainWorks && dispatcher === 1));
  const mainRoles = roles.filter((role) => {
    if (role === "api") return api === 0;
    return role !== "dispatcher" || mainDelivers;
  });
  return { mainRoles, api, dispatcher: Math.min(dispatcher, shards) };
}

/** The role of a child process. */
export type ChildRole = "api" | "dispatcher";

/** Returns the names of a plan's child processes, like `api-1`. */
export function listChildren(plan: Readonly<Record<ChildRole, number>>): ReadonlyMap<string, ChildRole> {
  const roles = ["api", "dispatcher"] as const;
  return new Map(roles.flatMap((role) => Array.from({ length: plan[role] }, (_, n) => [`${role}-${n + 1}`, role])));
}

const split = (wanted: WantedProcesses) => ("api" in wanted ? wanted : { api: 0, dispatcher: 0 });

function childCount(total: number, mainWorks: boolean): number {
  if (total === 1) return 0;
  return mainWorks ? total - 1 : total;
}

function shareOut(
  children: number,
  { hasApi, hasDispatcher }: { readonly hasApi: boolean; readonly hasDispatcher: boolean },
): { readonly api: number; readonly dispatcher: number } {
  if (!hasApi) return { api: 0, dispatcher: hasDispatcher ? children : 0 };
  if (!hasDispatcher) return { api: children, dispatcher: 0 };
  const share = COST_US.api / (COST_US.api + COST_US.dispatcher);
  const api = Math.min(children, Math.max(1, Math.round(children * share)));
  return { api, dispatcher: children - api };
}
