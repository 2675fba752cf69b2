import type { Json, JsonObject } from "../../../domain/json.ts";
import { fault } from "./fault.ts";

const QUOTED_CHARS_MAX = 100;

/**
 * Accepted names of an object's members: each as Apple or Google writes it (`textAlignment`) and as `text_alignment`.
 */
export class MemberNames {
  private readonly canonical = new Map<string, string>();

  constructor(names: readonly string[]) {
    for (const name of names) this.canonical.set(snakeCase(name), name);
    for (const name of names) this.canonical.set(name, name);
  }

  /**
   * The members by camelCase name; if an object has both spellings, the camelCase one wins. Throws an `ApiError` 400
   * for an unknown name: a misspelt member would otherwise be lost silently.
   */
  read(object: JsonObject, path: string): Map<string, Json> {
    const members = new Map<string, Json>();
    for (const [given, value] of Object.entries(object)) {
      const name = this.canonical.get(given);
      if (name === undefined) throw fault(`${path}.${given.slice(0, QUOTED_CHARS_MAX)}`, "is not a known field");
      if (given === name || !members.has(name)) members.set(name, value);
    }
    return members;
  }
}

/** `icon2xBase64` is `icon_2x_base64`, `proximityUUID` is `proximity_uuid`. */
export function snakeCase(name: string): string {
  return name
    .replace(/([a-z])(\dx)/g, "$1_$2")
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase();
}
