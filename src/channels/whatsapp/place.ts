import { Type } from "@sinclair/typebox";
import type { Json, JsonObject } from "../../domain/texts/json.ts";
import { optional } from "../../http/schemas.ts";
import { complaintAboutLine, line } from "./templates/value-rules.ts";

/** A location on the map, in degrees (WGS 84). */
export interface Place {
  readonly latitude: number;
  readonly longitude: number;
  readonly name?: string;
  readonly address?: string;
}

const PLACE_CHARS_MAX = 256;

/** The members of a location in a body. */
export const PLACE_MEMBERS = {
  latitude: Type.Number({ minimum: -90, maximum: 90 }),
  longitude: Type.Number({ minimum: -180, maximum: 180 }),
  name: optional(line(PLACE_CHARS_MAX)),
  address: optional(line(PLACE_CHARS_MAX)),
};

/** Returns a sentence that says why the location `where` is invalid, or null. */
export function complaintAboutPlace({ latitude, longitude, name, address }: JsonObject, where: string): string | null {
  if (!isWithin(latitude, 90)) return `${where}.latitude must be a number from -90 to 90`;
  if (!isWithin(longitude, 180)) return `${where}.longitude must be a number from -180 to 180`;
  return (
    complaintAboutLine(name, PLACE_CHARS_MAX, `${where}.name`) ??
    complaintAboutLine(address, PLACE_CHARS_MAX, `${where}.address`)
  );
}

function isWithin(value: Json | undefined, most: number): boolean {
  return typeof value === "number" && Math.abs(value) <= most;
}

/** Reads a location from a checked request or a queued payload; null if the object is no location. */
export function readPlace({ latitude, longitude, name, address }: JsonObject): Place | null {
  if (typeof latitude !== "number" || typeof longitude !== "number") return null;
  return {
    latitude,
    longitude,
    ...(typeof name === "string" ? { name } : null),
    ...(typeof address === "string" ? { address } : null),
  };
}

/** Converts a location to the provider's form (WhatsApp Cloud API, "Location messages"). */
export function graphPlace({ latitude, longitude, ...named }: Place): JsonObject {
  return { latitude: degrees(latitude), longitude: degrees(longitude), ...named };
}

/** Formats degrees as text, as the provider documents them: to a centimetre, and never with an exponent. */
function degrees(value: number): string {
  return value.toFixed(7).replace(/\.?0+$/, "");
}
