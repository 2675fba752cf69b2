import { WHATSAPP_USER_ID } from "../../domain/channels/whatsapp.ts";
import { isJsonObject, type Json, type JsonObject } from "../../domain/texts/json.ts";
import { shortened } from "./callbacks/shortened.ts";
import { chatLimits } from "./limits.ts";

/** The provider's names for a person: a number, its own ids, or both (WhatsApp Cloud API, "Business-scoped user IDs"). */
export interface PersonIds {
  /** The number's digits; null if a username hides it. */
  readonly from: string | null;
  readonly userId: string | null;
  /** The id that several linked businesses share. */
  readonly parentUserId: string | null;
}

export interface Person extends PersonIds {
  readonly username: string | null;
  /** The person's own display name. */
  readonly name: string | null;
}

/** A person whose number or ids the provider has changed. */
export interface ChangedPerson {
  readonly before: PersonIds;
  readonly after: PersonIds;
}

const NAME_CHARS_MAX = 256;

/** Lists all ids under which a person can be addressed or looked up. */
export function listIds({ from, userId, parentUserId }: PersonIds): readonly string[] {
  return [from, userId, parentUserId].filter((id) => id !== null);
}

/** Reads the writer of a message; null if it names none. `contacts`: the contacts in its call. */
export function readWriter(message: JsonObject, contacts: Json | undefined): Person | null {
  const own = personIds([message["from"], message["from_user_id"], message["from_parent_user_id"]]);
  const listed = (Array.isArray(contacts) ? contacts : []).filter(isJsonObject);
  const isOwn = (contact: JsonObject) => {
    const ids = listIds(contactIds(contact));
    return listIds(own).some((id) => ids.includes(id));
  };
  // A call with one message may name its writer in the contact alone.
  const contact = listed.find(isOwn) ?? (listIds(own).length === 0 && listed.length === 1 ? listed[0] : undefined);
  const other = contact === undefined ? own : contactIds(contact);
  const ids: PersonIds = {
    from: own.from ?? other.from,
    userId: own.userId ?? other.userId,
    parentUserId: own.parentUserId ?? other.parentUserId,
  };
  if (listIds(ids).length === 0) return null;
  const profile = isJsonObject(contact?.["profile"]) ? contact["profile"] : {};
  return {
    ...ids,
    username: shortened(profile["username"] ?? contact?.["username"], NAME_CHARS_MAX),
    name: shortened(profile["name"], NAME_CHARS_MAX),
  };
}

/**
 * Reads a person's new number or ids from a system message (WhatsApp Cloud API, "System messages"); null if it has
 * none. `from` is the former number.
 */
export function changedPerson(message: JsonObject): ChangedPerson | null {
  const { system } = message;
  if (!isJsonObject(system)) return null;
  const after = personIds([system["wa_id"] ?? system["new_wa_id"], system["user_id"], system["parent_user_id"]]);
  const before = personIds([
    message["from"],
    system["previous_user_id"] ?? message["from_user_id"],
    system["previous_parent_user_id"] ?? message["from_parent_user_id"],
  ]);
  const [old, fresh] = [listIds(before), listIds(after)];
  return old.length > 0 && fresh.some((id) => !old.includes(id)) ? { before, after } : null;
}

/** Reads the person that a system message is about, who may be named only there. */
export function readSubject(message: JsonObject): Person | null {
  const changed = changedPerson(message);
  if (changed === null) return null;
  return { ...changed.before, username: null, name: null };
}

function contactIds(contact: JsonObject): PersonIds {
  return personIds([contact["wa_id"], contact["user_id"], contact["parent_user_id"]]);
}

/** Reads the ids; some gateways put a person's id in the number's member. */
function personIds([number, user, parent]: readonly [Json | undefined, Json | undefined, Json | undefined]): PersonIds {
  const isId = typeof number === "string" && WHATSAPP_USER_ID.test(number);
  return {
    from: isId ? null : nameIn(number),
    userId: nameIn(user) ?? (isId ? number : null),
    parentUserId: nameIn(parent),
  };
}

function nameIn(value: Json | undefined): string | null {
  return typeof value === "string" && value !== "" && value.length <= chatLimits.chatMessageIdCharsMax ? value : null;
}
