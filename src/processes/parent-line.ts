import type { Calls } from "../domain/calls.ts";
import { PING } from "./child-process.ts";
import { type CallMessage, MessageCalls } from "./message-calls.ts";

/** The line to the process that started this one, or null if that is not the main process of a start. */
export function openParentLine(): Calls | null {
  if (process.send === undefined) return null;
  const calls = new MessageCalls((message) => void process.send?.(message));
  // The main process runs the same build and sends messages of this form.
  process.on("message", (message) => calls.take(message as CallMessage));
  process.on("disconnect", () => calls.cut());
  calls.serve(PING, () => null);
  return calls;
}
