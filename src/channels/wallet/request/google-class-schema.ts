import { type TProperties, Type } from "@sinclair/typebox";
import type { GoogleKind } from "../../../domain/channels/wallet.ts";
import type { JsonObject } from "../../../domain/texts/json.ts";
import { enumSchema, optional } from "../../../http/schemas.ts";
import { CLASS_ID } from "./accept-google-class.ts";
import { DATE_TIME, LOCAL_TIME, REQUIRED_OF_CLASS } from "./google-class-members.ts";
import { Colour, LocalizedText, OTHERS_TOO } from "./google-schema.ts";
import { toPart } from "./part-of.ts";

/** Google classes in the API document. Other members are sent to Google unchanged. */

const Image = Type.Object(
  {
    sourceUri: optional(Type.Object({ uri: Type.String({ format: "uri" }) }, OTHERS_TOO)),
    privateImageId: optional(
      Type.String({ description: "The id of an image that Google already has, in place of the other." }),
    ),
  },
  { $id: "GoogleImage", ...OTHERS_TOO },
);
const ClassTime = Type.String({
  pattern: DATE_TIME.source,
  description: "Without an offset it is the venue's own time.",
});
const LocalTime = Type.String({
  pattern: LOCAL_TIME.source,
  description: "The airport's own time, without an offset.",
});
const AIRPORT: TProperties = { airportIataCode: Type.String({ pattern: "^[A-Za-z]{3}$" }) };
const Airport = Type.Object(AIRPORT, { $id: "GoogleAirport", ...OTHERS_TOO });
const AirportChange = Type.Object(toPart(AIRPORT), { $id: "GoogleAirportChange", ...OTHERS_TOO });
const Carrier = Type.Object(
  { carrierIataCode: optional(Type.String()), carrierIcaoCode: optional(Type.String()) },
  { $id: "GoogleCarrier", ...OTHERS_TOO, description: "One of the two codes." },
);
const FLIGHT_HEADER: TProperties = { carrier: Carrier, flightNumber: Type.String({ minLength: 1 }) };
const word = Type.String({ minLength: 1 });

/** Members by name, which mean the same in each kind that has them. */
const MEMBERS: TProperties = {
  issuerName: word,
  eventName: LocalizedText,
  programName: word,
  programLogo: Image,
  title: word,
  provider: word,
  redemptionChannel: Type.String({ minLength: 1, description: "Such as INSTORE, ONLINE or BOTH." }),
  transitType: Type.String({ minLength: 1, description: "Such as BUS, RAIL, TRAM, FERRY or OTHER." }),
  origin: Airport,
  destination: Airport,
  flightHeader: Type.Object(FLIGHT_HEADER, { $id: "GoogleFlightHeader", ...OTHERS_TOO }),
  localScheduledDepartureDateTime: LocalTime,
  venue: Type.Object({ name: LocalizedText, address: LocalizedText }, OTHERS_TOO),
  dateTime: Type.Object(
    { doorsOpen: optional(ClassTime), start: optional(ClassTime), end: optional(ClassTime) },
    OTHERS_TOO,
  ),
  hexBackgroundColor: Colour,
  logo: Image,
  heroImage: Image,
};
/** The same where a change can give them in part. */
const IN_PARTS: TProperties = {
  venue: Type.Object({ name: optional(LocalizedText), address: optional(LocalizedText) }, OTHERS_TOO),
  origin: AirportChange,
  destination: AirportChange,
  flightHeader: Type.Object(toPart(FLIGHT_HEADER), { $id: "GoogleFlightHeaderChange", ...OTHERS_TOO }),
};

/** The optional members in the schema of each kind's class. */
const FURTHER: Readonly<Record<GoogleKind, readonly string[]>> = {
  generic: [],
  eventTicket: ["venue", "dateTime", "hexBackgroundColor", "logo", "heroImage"],
  loyalty: ["hexBackgroundColor", "heroImage"],
  offer: ["hexBackgroundColor", "heroImage"],
  giftCard: ["hexBackgroundColor", "heroImage", "programLogo"],
  transit: ["hexBackgroundColor", "heroImage"],
  flight: ["hexBackgroundColor", "heroImage"],
};

const newId = Type.String({ pattern: CLASS_ID.source, description: "`<issuer_id>.<class_name>`." });
const sameId = optional(Type.String({ description: "As in the address." }));
const newReview = optional(Type.Unsafe<string>({ ...enumSchema(["DRAFT", "UNDER_REVIEW"]), default: "UNDER_REVIEW" }));
const review = enumSchema(
  ["DRAFT", "UNDER_REVIEW", "APPROVED", "REJECTED"],
  "All but DRAFT count as UNDER_REVIEW, so what was read can be given back.",
);

function newClass(kind: GoogleKind) {
  const required = pick(MEMBERS, REQUIRED_OF_CLASS[kind]);
  const further = toPart(pick(MEMBERS, FURTHER[kind]));
  const members = { id: newId, ...required, ...further, ...(kind === "generic" ? {} : { reviewStatus: newReview }) };
  return Type.Object(
    {
      class_type: Type.Literal(kind),
      class_data: Type.Object(members, { ...OTHERS_TOO, description: `${aClass(kind)}${unreviewed(kind)}` }),
    },
    { $id: `New${capitalizeKind(kind)}Class`, additionalProperties: false },
  );
}

function classUpdate(kind: GoogleKind) {
  const known = pick({ ...MEMBERS, ...IN_PARTS }, [...REQUIRED_OF_CLASS[kind], ...FURTHER[kind]]);
  const members = toPart(kind === "generic" ? known : { ...known, reviewStatus: review });
  const parts = Object.keys(known).filter((name) => Object.hasOwn(IN_PARTS, name) || name === "dateTime");
  const kept =
    parts.length === 0 ? "" : ` ${parts.map((name) => `\`${name}\``).join(", ")} keep the members that are left out.`;
  return Type.Object(
    {
      class_type: Type.Literal(kind),
      class_data: Type.Object(
        { id: sameId, ...members },
        { ...OTHERS_TOO, description: `The changes. ${aClass(kind)}${unreviewed(kind)}${kept}` },
      ),
    },
    { $id: `${capitalizeKind(kind)}ClassUpdate`, additionalProperties: false },
  );
}

function pick(members: TProperties, names: readonly string[]): TProperties {
  return Object.fromEntries(Object.entries(members).filter(([name]) => names.includes(name)));
}

function capitalizeKind(kind: GoogleKind): string {
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`;
}

function aClass(kind: GoogleKind): string {
  return `${/^[AEIOU]/.test(capitalizeKind(kind)) ? "An" : "A"} \`${capitalizeKind(kind)}Class\` of Google's REST API.`;
}

function unreviewed(kind: GoogleKind): string {
  return kind === "generic" ? " It has no `reviewStatus`." : "";
}

/** The body of `POST /v1/google/classes`. */
export const NewGoogleClass = Type.Union(
  [
    newClass("eventTicket"),
    newClass("generic"),
    newClass("loyalty"),
    newClass("offer"),
    newClass("giftCard"),
    newClass("transit"),
    newClass("flight"),
  ],
  { $id: "NewGoogleClass" },
);

/** The body of `PUT /v1/google/classes/{id}`. */
export const GoogleClassUpdate = Type.Union(
  [
    classUpdate("eventTicket"),
    classUpdate("generic"),
    classUpdate("loyalty"),
    classUpdate("offer"),
    classUpdate("giftCard"),
    classUpdate("transit"),
    classUpdate("flight"),
  ],
  { $id: "GoogleClassUpdate" },
);

/** A class as Google returns it, unchecked: its known members, and any others. */
export const GoogleClass = Type.Unsafe<JsonObject>(
  Type.Object(
    {
      id: Type.String(),
      issuerName: Type.Optional(Type.String()),
      eventName: Type.Optional(LocalizedText),
      venue: Type.Optional(
        Type.Object({ name: Type.Optional(LocalizedText), address: Type.Optional(LocalizedText) }, OTHERS_TOO),
      ),
      dateTime: Type.Optional(
        Type.Object(
          {
            doorsOpen: Type.Optional(Type.String()),
            start: Type.Optional(Type.String()),
            end: Type.Optional(Type.String()),
          },
          OTHERS_TOO,
        ),
      ),
      hexBackgroundColor: Type.Optional(Type.String()),
      logo: Type.Optional(Image),
      heroImage: Type.Optional(Image),
      reviewStatus: Type.Optional(Type.String()),
    },
    {
      $id: "GoogleClass",
      ...OTHERS_TOO,
      description: "A class of Google's REST API, such as an `EventTicketClass`.",
    },
  ),
);
