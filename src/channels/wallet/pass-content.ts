import { isJsonObject, type JsonObject } from "../../domain/json.ts";
import { GOOGLE_KINDS, PASS_STYLES, type PassContent } from "../../domain/wallet.ts";

/** A pass's content as its column stores it. */
export function passContentBody(content: PassContent): JsonObject {
  return { ...content };
}

/** Reads back what `passContentBody` wrote. */
export function parsePassContent(body: JsonObject): PassContent {
  const { type, style, pass, images, kind, classId, object } = body;
  const knownStyle = PASS_STYLES.find((one) => one === style);
  if (type === "apple" && knownStyle !== undefined && isJsonObject(pass) && isJsonObject(images)) {
    const files = Object.entries(images).map(([file, hash]) => [file, String(hash)] as const);
    return { type, style: knownStyle, pass, images: Object.fromEntries(files) };
  }
  const knownKind = GOOGLE_KINDS.find((one) => one === kind);
  if (type === "google" && knownKind !== undefined && typeof classId === "string" && isJsonObject(object)) {
    return { type, kind: knownKind, classId, object };
  }
  throw new Error("a stored pass is incomplete");
}
