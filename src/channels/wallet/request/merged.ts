import { isJsonArray, isJsonObject, type Json, type JsonObject } from "../../../domain/texts/json.ts";
import { FIELD_PLACES } from "./apple-fields.ts";
import { mergedLanguages } from "./apple-languages.ts";
import type { AppleMembers } from "./apple-pass.ts";

/**
 * By list name: the member that identifies a list's items. A known item is changed, a new one is appended; those without it replace
 * the former ones without it, which would pile up with each update otherwise.
 */
type KeyedLists = Readonly<Record<string, string>>;

const APPLE_LISTS: KeyedLists = Object.fromEntries(FIELD_PLACES.map((place) => [place, "key"]));
/** Google itself replaces whole lists. */
const GOOGLE_LISTS: KeyedLists = {
  textModulesData: "id",
  imageModulesData: "id",
  messages: "id",
};

/** Lays members over those of an Apple pass. Members that belong to a replaced style are dropped. */
export function mergedApple(under: AppleMembers, over: AppleMembers): AppleMembers {
  const result = merged(withMoved(under, over), over, APPLE_LISTS);
  const languages = mergedLanguages(under.get("localizations"), over.get("localizations"));
  if (languages !== undefined) result.set("localizations", languages);
  for (const place of FIELD_PLACES) {
    const off = new Set(listFields(over, place).flatMap((field) => (field["value"] === null ? [field["key"]] : [])));
    if (off.size === 0) continue;
    const left = listFields(result, place).filter(({ key, value }) => !off.has(key) || (value ?? null) !== null);
    result.set(place, left);
  }
  if ((result.get("style") ?? "generic") === (under.get("style") ?? "generic")) return result;
  for (const name of ["transitType", "groupingIdentifier", "preferredStyleSchemes"])
    if (!over.has(name)) result.delete(name);
  return result;
}

/** The members under others, with each field that those name in one other place already there. */
function withMoved(under: AppleMembers, over: AppleMembers): AppleMembers {
  // Null: in several places, where one takes it off.
  const named = new Map<Json | undefined, string | null>();
  for (const place of FIELD_PLACES) {
    for (const { key } of listFields(over, place)) named.set(key, (named.get(key) ?? place) === place ? place : null);
  }
  const result = new Map(under);
  const moved = new Map<string, JsonObject[]>(FIELD_PLACES.map((place) => [place, []]));
  for (const from of FIELD_PLACES) {
    const fields = listFields(under, from);
    const staying = fields.filter(({ key }) => (named.get(key) ?? from) === from);
    if (staying.length === fields.length) continue;
    result.set(from, staying);
    for (const field of fields) {
      const to = named.get(field["key"]) ?? from;
      if (to !== from) moved.get(to)?.push(field);
    }
  }
  for (const [to, fields] of moved) if (fields.length > 0) result.set(to, [...listFields(result, to), ...fields]);
  return result;
}

/**
 * Lists the fields in a position; empty if its value is no list. Items that are no objects are left to the check of the
 * result.
 */
function listFields(members: AppleMembers, place: string): readonly JsonObject[] {
  const fields = members.get(place);
  return isJsonArray(fields) ? fields.filter(isJsonObject) : [];
}

/** Lays members over those of a Google object. */
export function mergedGoogle(under: JsonObject, over: JsonObject): JsonObject {
  return Object.fromEntries(merged(new Map(Object.entries(under)), new Map(Object.entries(over)), GOOGLE_LISTS));
}

/**
 * Lays members over others: a keyed list is merged item by item, and an item member by member; every other member
 * replaces the previous one. Null stays as a marker, so the caller can tell what was removed; in an item of a keyed
 * list, null removes. A creation of an Apple pass brings no nulls: there they count as absent.
 */
function merged(
  under: ReadonlyMap<string, Json>,
  over: ReadonlyMap<string, Json>,
  keyed: KeyedLists,
): Map<string, Json> {
  const result = new Map(under);
  for (const [name, value] of over) {
    const by = Object.hasOwn(keyed, name) ? keyed[name] : undefined;
    result.set(name, by === undefined ? value : mergedLists(under.get(name), value, by));
  }
  return result;
}

/**
 * Merges lists by key. A list without any key replaces the whole former list, because its items cannot be matched; an
 * empty list has no effect.
 *
 * A value that is not a list is not merged, nor is a second item with the key of another: checking the result reports it.
 */
function mergedLists(under: Json | undefined, over: Json, by: string): Json {
  if (!isJsonArray(under) || !isJsonArray(over)) return over;
  const hasKey = (item: Json) => readKey(item, by) !== undefined;
  if (over.length > 0 && !over.some(hasKey)) return over;
  const items: Json[] = over.every(hasKey) ? [...under] : under.filter(hasKey);
  const places = indexItems(items, by);
  const changed = new Set<number>();
  for (const item of over) {
    const at = places.get(readKey(item, by));
    if (at === undefined || changed.has(at)) {
      items.push(item);
    } else {
      items[at] = mergedItem(items[at], item);
      changed.add(at);
    }
  }
  return items;
}

/** Maps each key to the position of its first item. */
function indexItems(items: readonly Json[], by: string): ReadonlyMap<Json | undefined, number> {
  const places = new Map<Json | undefined, number>();
  for (const [at, item] of items.entries()) {
    const key = readKey(item, by);
    if (key !== undefined && !places.has(key)) places.set(key, at);
  }
  return places;
}

/** Reads an item's key; undefined if it has none. */
function readKey(item: Json, by: string): Json | undefined {
  const key = isJsonObject(item) && Object.hasOwn(item, by) ? item[by] : undefined;
  return key === null ? undefined : key;
}

function mergedItem(under: Json | undefined, over: Json): Json {
  if (!isJsonObject(under) || !isJsonObject(over)) return over;
  return Object.fromEntries(Object.entries({ ...under, ...over }).filter(([, value]) => value !== null));
}
