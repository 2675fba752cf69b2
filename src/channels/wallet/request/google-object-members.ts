import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import { isJsonArray, isJsonObject, type Json, type JsonObject, toNumber } from "../../../domain/texts/json.ts";
import { type Checked, checkEach, Fault, fault, readFilledText } from "./readers.ts";

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

/** Finds a missing member that the object's kind requires, or returns null. `path`: the prefix of its members' names. */
export function findLack(kind: GoogleKind, object: JsonObject, path: string): Fault | null {
  const missing = REQUIRED_OF_OBJECT[kind].find((name) => (object[name] ?? null) === null);
  if (missing !== undefined) return fault(`${path}.${missing}`, "is required");
  return kind === "transit" ? lackOfTransit(object, path) : null;
}

/** The forms in which a balance of points can be given. */
const BALANCES = ["string", "int", "double", "money"];

/** `loyaltyPoints` and `secondaryLoyaltyPoints`. */
export function readPoints(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const balance = value["balance"] ?? null;
  if (!isJsonObject(balance)) return fault(`${field}.balance`, "must be an object");
  const forms = BALANCES.filter((name) => (balance[name] ?? null) !== null);
  if (forms.length > 1) return fault(`${field}.balance`, `must not have both ${forms[0]} and ${forms[1]}`);
  const money = balance["money"] ?? null;
  const read = money === null ? null : readMoney(money, `${field}.balance.money`);
  return read instanceof Fault ? read : value;
}

/** An amount in millionths: an integer of 64 bits, which JSON writes as a string or a number. */
export function readMoney(value: Json, field: string): Checked<Json> {
  if (!isJsonObject(value)) return fault(field, "must be an object");
  const { micros = null, currencyCode = null } = value;
  const isInteger = typeof micros === "string" ? /^-?\d{1,19}$/.test(micros) : Number.isInteger(toNumber(micros));
  if (!isInteger) return fault(`${field}.micros`, "must be an integer: the amount in millionths");
  const code = readFilledText(currencyCode, `${field}.currencyCode`);
  return code instanceof Fault ? code : value;
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
