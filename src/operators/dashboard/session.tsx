import { type ComponentChildren, createContext, type JSX } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api.ts";

export const SessionContext = createContext<Session>({ name: "", role: "read" });

/** Whether the operator may change things. */
export function useMayChange(): boolean {
  return useContext(SessionContext).role === "write";
}

/** A button that changes something, or begins to. Who may only look does not see it. */
export function ChangeButton({
  style,
  label,
  isDisabled = false,
  onClick,
  children,
}: {
  readonly style?: "primary" | "danger-quiet";
  /** Where the text alone does not say on what. */
  readonly label?: string;
  readonly isDisabled?: boolean;
  onClick(): void;
  readonly children: ComponentChildren;
}): JSX.Element | null {
  if (!useMayChange()) return null;
  return (
    <button type="button" class={style} aria-label={label} disabled={isDisabled} onClick={onClick}>
      {children}
    </button>
  );
}
