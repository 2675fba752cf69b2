import type { Calls } from "../domain/calls.ts";
import { PING } from "./child-process.ts";
import { type CallMessage, MessageCalls } from "./message-calls.ts";

/** The line to the process that started this one, or null where that is not the main process of a start. */
export function openParentLine(): Calls | null {
  if (process.send === undefined) return null;
  const calls = new MessageCalls((message) => void process.send?.(message));
  // Messages have the form that the main process, which runs the same build, gives them.
  process.on("message", (message) => calls.take(message as CallMessage));
  process.on("disconnect", () => calls.cut());
  calls.serve(PING, () => null);
  return calls;
}
