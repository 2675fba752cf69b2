import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api.ts";

export const SessionContext = createContext<Session>({ name: "", role: "read" });

/** Whether the operator may change things. Buttons that do are not shown to who may not. */
export function useMayChange(): boolean {
  return useContext(SessionContext).role === "write";
}
