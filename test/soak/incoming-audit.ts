import type { Verdict } from "./judge.ts";
import type { SoakWorld } from "./soak-world.ts";

/** Compares incoming texts with those that operators see. */
export async function auditIncoming({ api, book }: Pick<SoakWorld, "api" | "book">): Promise<Verdict> {
  const listed: string[] = [];
  let cursor: string | null = null;
  do {
    const path = `/whatsapp/messages?limit=500${cursor === null ? "" : `&cursor=${cursor}`}`;
    const { status, body } = await api.operator("GET", path);
    if (status !== 200) throw new Error(`the list of incoming messages was answered ${status}`);
    for (const { message_id: id } of body.messages) listed.push(id);
    cursor = body.next_cursor;
  } while (cursor !== null);
  return incomingVerdict(book.written, listed);
}

/** Each message that the provider received a 200 for is listed once. */
export function incomingVerdict(written: ReadonlySet<string>, listed: readonly string[]): Verdict {
  const times = Map.groupBy(listed, (id) => id);
  const missing = Array.from(written).filter((id) => !times.has(id));
  const repeated = Array.from(times).filter(([, { length }]) => length > 1);
  const broken = [
    ...missing.map((id) => `${id} is not there`),
    ...repeated.map(([id, { length }]) => `${id} is there ${length} times`),
  ];
  return { promise: "what people write is kept once", checked: written.size, broken, note: "" };
}
