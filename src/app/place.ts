import type { ChannelPorts } from "../channels/contract.ts";
import type { Config } from "../config/config.ts";
import type { Calls } from "../domain/calls.ts";
import type { ProcessPlan } from "../processes/process-plan.ts";
import type { Shutdown } from "../runtime/shutdown.ts";
import { type Answers, answersAlone, answersOfChild, type OwnAnswers } from "./answers.ts";
import type { ListenerPlace } from "./listener.ts";
import type { MainProcess, Role } from "./main-process.ts";
import { joinStores, type MainStores, openStores, type StoresOptions } from "./open-stores.ts";
import type { ChildOrder, Peers } from "./process-calls.ts";

/** Which process of a start this is. */
export type Place =
  | { readonly kind: "alone" }
  | { readonly kind: "main"; readonly plan: ProcessPlan<Role> }
  | { readonly kind: "child"; readonly order: ChildOrder; readonly calls: Calls };

export const ALONE: Place = { kind: "alone" };

/** The stores of the start, and how this process's children access them. */
export async function storesAt(
  place: Place,
  options: StoresOptions,
  { shutdown, onBroken }: { readonly shutdown: Shutdown; onBroken(reason: string): void },
): Promise<MainStores> {
  if (place.kind !== "child") return openStores(options, shutdown, onBroken);
  const { calls, order } = place;
  const joined = await joinStores(options, shutdown, { ...order, calls });
  return { ...joined, embedded: null, analysts: null, eventStoreAddress: order.eventStore, serveTo: () => undefined };
}

/** Returns this process's answers about the start. */
export function answersAt(place: Place, main: MainProcess | null, own: OwnAnswers): Answers {
  if (place.kind === "child") return answersOfChild(own, place.calls);
  return main === null ? answersAlone(own) : main.answersFor(own);
}

/** Which listeners run here. `roles`: this process's own. */
export function listenerAt(place: Place, roles: readonly Role[]): ListenerPlace {
  switch (place.kind) {
    case "child":
      return { main: roles.includes("api") ? "shared" : "elsewhere", hasMetrics: false };
    case "main":
      return { main: place.plan.api > 0 ? "elsewhere" : "alone", hasMetrics: true };
    case "alone":
      return { main: "alone", hasMetrics: true };
  }
}

/** How many processes of the start play each role. */
export function peersAt(place: Place, main: MainProcess | null): Peers {
  if (place.kind === "child") return place.order.peers;
  return main?.peers ?? { api: 1, dispatcher: 1 };
}

/** Whether the sandboxes and the connections to providers are in this process. `config`: of the whole start. */
export function deliveryAt(
  place: Place,
  config: Config,
  { dispatcher }: Peers,
): Pick<ChannelPorts, "delivers" | "dispatchers"> {
  const roles = place.kind === "main" && config.providers === "live" ? place.plan.mainRoles : config.roles;
  return { delivers: roles.includes("dispatcher"), dispatchers: Math.max(1, dispatcher) };
}
