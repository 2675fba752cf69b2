/** Returns the requested value. Throws if there is none, with the reason if one is given. */
export function usable<T>(answer: T): Exclude<T, { readonly why: string } | null> {
  if (answer === null) throw new Error("there is none");
  if (typeof answer === "object" && "why" in answer) throw new Error(String(answer.why));
  // Both other answers have thrown.
  return answer as Exclude<T, { readonly why: string } | null>;
}
