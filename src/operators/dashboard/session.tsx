import { type ComponentChildren, createContext, type JSX } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./api.ts";

export const SessionContext = createContext<Session>({ name: "", role: "read" });

/** Whether the operator may change things. */
export function useMayChange(): boolean {
  return useContext(SessionContext).role === "write";
}

/** A button that makes or begins a change. It is hidden from read-only operators. */
export function ChangeButton({
  style,
  label,
  isDisabled = false,
  onClick,
  children,
}: {
  readonly style?: "primary" | "danger-quiet";
  /** The full label, if the text alone does not name its object. */
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
