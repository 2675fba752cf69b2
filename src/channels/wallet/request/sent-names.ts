import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { type Checked, Fault, snakeCase } from "./readers.ts";

/** The path that a fault's sentence begins with: `pass_data.back_fields[2].key`. */
const PATH = /^[A-Za-z_]\w*(?:\[\d+\]|\.[A-Za-z_]\w*)*/;
const SEGMENT = /\[(\d+)\]|[A-Za-z_]\w*/g;

/** Members that stand in one place of a pass and can be sent under another name: an update's changes, its object's id. */
const LEFT_OUT = "object_data";
const OTHER_NAMES: Readonly<Record<string, string>> = { id: "object_id" };

/** The same, but a fault names each member as the body spells it (`backFields`) and where the body has it. */
export function asSent<T>(checked: Checked<T>, body: unknown): Checked<T> {
  if (!(checked instanceof Fault) || !isJsonObject(body)) return checked;
  const [path = ""] = PATH.exec(checked.message) ?? [];
  return new Fault(sentPath(path, body) + checked.message.slice(path.length));
}

function sentPath(path: string, body: JsonObject): string {
  let at: Json | undefined = body;
  let sent = "";
  for (const [segment, index] of path.matchAll(SEGMENT)) {
    if (index !== undefined) {
      sent += segment;
      at = isJsonArray(at) ? at[Number(index)] : undefined;
      continue;
    }
    let name = spelling(at, segment);
    if (name === undefined && snakeCase(segment) === LEFT_OUT && !path.endsWith(segment)) continue;
    const inside: Json | undefined = at === body ? body["pass_data"] : undefined;
    if (name === undefined && spelling(inside, segment) !== undefined) {
      name = spelling(inside, segment);
      sent = "pass_data";
      at = inside;
    }
    sent += `${sent === "" ? "" : "."}${name ?? segment}`;
    at = isJsonObject(at) && name !== undefined ? at[name] : undefined;
  }
  return sent;
}

/** The object's own name for a member; undefined: it has none. */
function spelling(object: Json | undefined, name: string): string | undefined {
  if (!isJsonObject(object)) return undefined;
  if (Object.hasOwn(object, name)) return name;
  const meant = new Set([snakeCase(name), OTHER_NAMES[name]]);
  return Object.keys(object).find((given) => meant.has(snakeCase(given)));
}
