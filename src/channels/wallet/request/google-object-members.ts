import { Type } from "@sinclair/typebox";
import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject, toNumber } from "../../../domain/texts/json.ts";
import { enumSchema } from "../../../http/schemas.ts";
import { filled, type Kind, type Kinds, kind, list, matching, OTHERS_TOO, open, said, text } from "./kinds.ts";
import { type Checked, checkEach, choiceReader, Fault, fault, listReader } from "./readers.ts";

export const OBJECT_ID = /^[A-Za-z0-9]+\.[A-Za-z0-9._-]{1,200}$/;
const OBJECT_STATES = ["ACTIVE", "COMPLETED", "EXPIRED", "INACTIVE"] as const;
const ITEMS_MAX = 50;

/**
 * Required members of an object of each kind according to Google's reference, beside its ids, its state and members
 * with a default here.
 */
export const REQUIRED_OF_OBJECT: Readonly<Record<GoogleKind, readonly string[]>> = {
  generic: [],
  eventTicket: [],
  loyalty: [],
  offer: [],
  giftCard: ["cardNumber"],
  transit: ["tripType"],
  flight: ["passengerName", "reservationInfo"],
};

/** A text in one or more languages (`LocalizedString`). */
const ownLanguage = open({ language: text, value: text }, ["language", "value"], { missing: null });
export const localized = kind(
  (value, field) => {
    const inOwn = isJsonObject(value) ? value["defaultValue"] : undefined;
    const where = `${field}.defaultValue`;
    if (!isJsonObject(inOwn)) return fault(where, "must be an object with language and value");
    const read = ownLanguage.read(inOwn, where);
    return read instanceof Fault ? read : value;
  },
  open({ defaultValue: ownLanguage }, ["defaultValue"], { $id: "LocalizedText" }).schema,
);

/** A colour in the form that Google's wallet accepts (`hexBackgroundColor`). */
export const googleColour = matching(/^#[0-9A-Fa-f]{6}$/, "must be a colour such as #0B1F3A", {
  description: "Such as #0B1F3A.",
});

/** An amount in millionths: an integer of 64 bits, which JSON writes as a string or a number. */
const MICROS = /^-?[0-9]{1,19}$/;
const money = open(
  {
    micros: kind(
      (value, field) => {
        const isInteger = typeof value === "string" ? MICROS.test(value) : Number.isInteger(toNumber(value));
        return isInteger ? value : fault(field, "must be an integer: the amount in millionths");
      },
      Type.Union([Type.String({ pattern: MICROS.source }), Type.Integer()], {
        description: "The amount in millionths: 12.50 is 12500000.",
      }),
    ),
    currencyCode: filled,
  },
  ["micros", "currencyCode"],
  { $id: "GoogleMoney", missing: null },
);

/** A member that Google alone checks. */
const unread = (schema: Kind["schema"]) => kind((value) => value, schema);
const balance = open(
  { string: unread(text.schema), int: unread(Type.Integer()), double: unread(Type.Number()), money },
  [],
  { description: "In one of these forms." },
);
const BALANCES = ["string", "int", "double", "money"];
const points = open(
  {
    balance: kind((value, field) => {
      const forms = isJsonObject(value) ? BALANCES.filter((name) => (value[name] ?? null) !== null) : [];
      if (forms.length > 1) return fault(field, `must not have both ${forms[0]} and ${forms[1]}`);
      return balance.read(value, field);
    }, balance.schema),
  },
  ["balance"],
  { $id: "GooglePoints", missing: null },
);

const textModule = open({
  id: matching(/^[A-Za-z0-9_-]{1,100}$/, "must be letters, digits, hyphens and underscores", {
    description: "Unique in the object.",
  }),
  header: unread(text.schema),
  body: unread(text.schema),
});
const textModules = kind((value, field) => {
  const ids = new Set<Json>();
  const readOne = (item: Json, path: string): Checked<Json> => {
    const read = textModule.read(item, path);
    const id = isJsonObject(item) ? (item["id"] ?? null) : null;
    if (read instanceof Fault || id === null) return read;
    if (ids.has(id)) return fault(`${path}.id`, "must be unique, and is there twice");
    ids.add(id);
    return read;
  };
  return listReader(readOne, ITEMS_MAX)(value, field);
}, list(textModule, ITEMS_MAX).schema);
const links = list(matching(OBJECT_ID, "must be the id of an object"), ITEMS_MAX);

/** Members of an object that we check; Google receives and checks all others unchanged. */
export const OBJECT_MEMBERS: Kinds = {
  state: kind(
    (value, field) => choiceReader(OBJECT_STATES)(typeof value === "string" ? value.toUpperCase() : value, field),
    enumSchema(OBJECT_STATES),
  ),
  ticketHolderName: text,
  ticketNumber: text,
  ticketType: localized,
  cardTitle: localized,
  header: localized,
  subheader: localized,
  hexBackgroundColor: googleColour,
  barcode: open({ type: text, value: text }, ["type", "value"], { missing: null }),
  textModulesData: textModules,
  linkedObjectIds: links,
  linkedOfferIds: links,
  loyaltyPoints: points,
  secondaryLoyaltyPoints: points,
  cardNumber: said(filled, "Required of a giftCard."),
  balance: money,
  tripType: said(filled, "Required of a transit pass, such as ONE_WAY or ROUND_TRIP."),
  passengerName: said(filled, "Required of a flight."),
  reservationInfo: unread(Type.Object({}, { ...OTHERS_TOO, description: "Required of a flight." })),
};

/** Finds a missing member that the object's kind requires, or returns null. `path`: the prefix of its members' names. */
export function findLack(kindOf: GoogleKind, object: JsonObject, path: string): Fault | null {
  const missing = REQUIRED_OF_OBJECT[kindOf].find((name) => (object[name] ?? null) === null);
  if (missing !== undefined) return fault(`${path}.${missing}`, "is required");
  return kindOf === "transit" ? lackOfTransit(object, path) : null;
}

function lackOfTransit(object: JsonObject, path: string): Fault | null {
  const leg = object["ticketLeg"] ?? null;
  const legs = object["ticketLegs"] ?? null;
  if (leg !== null && legs !== null) return fault(`${path}.ticketLegs`, "must be left out, or ticketLeg");
  if (legs !== null && !isJsonArray(legs)) return fault(`${path}.ticketLegs`, "must be a list");
  const isTimed = (object["validTimeInterval"] ?? null) !== null;
  const checked =
    legs === null
      ? [leg === null ? null : readLeg(leg, `${path}.ticketLeg`, isTimed)]
      : checkEach(legs, (item: Json, i) => readLeg(item, `${path}.ticketLegs[${i}]`, isTimed));
  if (checked instanceof Fault) return checked;
  return checked.find((one): one is Fault => one instanceof Fault) ?? null;
}

/** `isTimed`: the pass says itself when it is valid. */
function readLeg(value: Json, field: string, isTimed: boolean): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const has = (name: string) => (value[name] ?? null) !== null;
  if (has("destinationName") && !has("originName"))
    return fault(`${field}.originName`, "is required by destinationName");
  if (has("destinationStationCode") && !has("originStationCode")) {
    return fault(`${field}.originStationCode`, "is required by destinationStationCode");
  }
  if (!has("originName") && !has("originStationCode")) {
    return fault(`${field}.originName`, "is required where there is no originStationCode");
  }
  if (has("departureDateTime") || isTimed) return value;
  return fault(`${field}.departureDateTime`, "is required where the object has no validTimeInterval");
}
