import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  acceptGoogleClass,
  acceptGoogleClassChange,
} from "../../../src/channels/wallet/request/accept-google-class.ts";
import { acceptPass, checkTemplate } from "../../../src/channels/wallet/request/accept-pass.ts";
import { acceptPassUpdate, updatedContent } from "../../../src/channels/wallet/request/accept-pass-update.ts";
import { Fault } from "../../../src/channels/wallet/request/readers.ts";
import type { GoogleKind } from "../../../src/domain/channels/wallet.ts";
import type { JsonObject } from "../../../src/domain/texts/json.ts";
import { aPass, changed, GoogleWorld, getObject, ISSUER, ready, text } from "./google-world.ts";

const LOGO = { sourceUri: { uri: "https://images.example.com/logo.png" } };
const CLASS_ID = `${ISSUER}.members`;

interface Kind {
  readonly kind: GoogleKind;
  /** The members that its class must have, and those of an object. */
  readonly ofClass: JsonObject;
  readonly ofObject: JsonObject;
  /** Members that it may have, with one that Google may add tomorrow. */
  readonly further: JsonObject;
}

const KINDS: readonly Kind[] = [
  { kind: "eventTicket", ofClass: { eventName: text("The final") }, ofObject: {}, further: { ticketNumber: "12" } },
  {
    kind: "loyalty",
    ofClass: { programName: "Miles", programLogo: LOGO },
    ofObject: {},
    further: {
      accountId: "A-1",
      loyaltyPoints: { label: "Points", balance: { int: 500 } },
      secondaryLoyaltyPoints: { balance: { money: { micros: "12500000", currencyCode: "EUR" } } },
    },
  },
  {
    kind: "offer",
    ofClass: { title: "20 % off", provider: "Acme", redemptionChannel: "BOTH" },
    ofObject: {},
    further: { validTimeInterval: { end: { date: "2027-01-01T00:00:00Z" } } },
  },
  {
    kind: "giftCard",
    ofClass: {},
    ofObject: { cardNumber: "4711" },
    further: { pin: "0815", balance: { micros: 20_000_000, currencyCode: "USD" } },
  },
  {
    kind: "transit",
    ofClass: { transitType: "TRAM", logo: LOGO },
    ofObject: { tripType: "ROUND_TRIP" },
    further: { ticketLegs: [{ originName: text("Here"), departureDateTime: "2026-12-05T18:30:00" }] },
  },
  {
    kind: "flight",
    ofClass: {
      origin: { airportIataCode: "SFO" },
      destination: { airportIataCode: "ZRH" },
      flightHeader: { carrier: { carrierIataCode: "LX" }, flightNumber: "39" },
      localScheduledDepartureDateTime: "2026-12-05T18:30:00",
    },
    ofObject: { passengerName: "Ada", reservationInfo: { confirmationCode: "QX7" } },
    further: { boardingAndSeatingInfo: { seatNumber: "12A" } },
  },
];

const NEW = { tomorrowsMember: { its: ["value", 7] } };
const CONTEXT = { templates: new Map(), title: "Acme", issuerId: ISSUER, kind: "generic" } as const;

const newClass = ({ kind, ofClass }: Kind, members: JsonObject = {}) =>
  acceptGoogleClass({ class_type: kind, class_data: { id: CLASS_ID, issuerName: "Acme", ...ofClass, ...members } });
const newPass = ({ kind, ofObject }: Kind, members: JsonObject = {}) =>
  acceptPass(
    {
      pass_type: "google",
      pass_data: {
        class_id: CLASS_ID,
        class_type: kind,
        object_id: `${ISSUER}.pass-1`,
        object_data: { ...ofObject, ...members },
      },
    },
    CONTEXT,
  );

function sound<T>(checked: T | Fault): T {
  if (checked instanceof Fault) throw checked;
  return checked;
}

const describeFault = (checked: unknown) => (checked instanceof Fault ? checked.message : "taken");

const findKind = (kind: GoogleKind): Kind => {
  const found = KINDS.find((each) => each.kind === kind);
  if (found === undefined) throw new Error(kind);
  return found;
};

let world: GoogleWorld;
beforeAll(async () => {
  world = await GoogleWorld.open();
});
afterAll(() => world?.close());

for (const each of KINDS) {
  const { kind, ofClass, ofObject, further } = each;
  describe(`a Google pass of the kind ${kind}`, () => {
    test("has its class made, shown and changed, is brought, updated, told of, ended and read", async () => {
      const { data } = sound(newClass(each, NEW));
      const { tenant, wallet } = world;
      expect(await wallet.classes.create(tenant, { kind, classId: CLASS_ID, data })).toMatchObject({ kind: "done" });
      const change = sound(acceptGoogleClassChange({ class_type: kind, class_data: { countryCode: "CH" } }, CLASS_ID));
      expect(await wallet.classes.change(tenant, change)).toMatchObject({ kind: "done" });
      const held = await wallet.classes.read(tenant, kind, CLASS_ID);
      expect(held).toMatchObject({ kind: "done", data: { ...ofClass, ...NEW, countryCode: "CH" } });

      const { content, serial } = sound(newPass(each, { ...further, ...NEW }));
      const pass = { ...aPass({ serial: serial.replace("pass-1", `${kind}-1`) }), content };
      if (content.type !== "google") throw new Error("not a Google pass");
      const object = { ...content.object, id: pass.serial };
      const mine = { ...pass, content: { ...content, object } };
      expect(await world.create(mine)).toMatchObject({ kind: "delivered" });
      expect(world.held(mine)).toEqual({
        state: "ACTIVE",
        ...ofObject,
        ...further,
        ...NEW,
        id: mine.serial,
        classId: CLASS_ID,
      });
      // The answer was lost, and another process tries again.
      world.restart();
      expect(await world.create(mine)).toMatchObject({ kind: "delivered" });

      const later = ready(changed(mine, (before) => ({ ...before, heroImage: LOGO })));
      expect(await world.update(later, "Look")).toMatchObject({ kind: "delivered", result: { notified: "alerted" } });
      expect(world.held(later)).toMatchObject({ heroImage: LOGO });
      expect(world.messages(later)).toEqual([["Look", "TEXT_AND_NOTIFY"]]);
      const ended = changed(later, (before) => ({ ...before, state: "EXPIRED" }));
      expect(await world.update(ended)).toMatchObject({ kind: "delivered" });
      world.sandbox.resources.set(`${kind}Object`, ended.serial, { hasUsers: true });
      expect(await world.wallet.status(tenant, ended)).toEqual({
        googleStatus: "EXPIRED",
        hasUsers: true,
        isInstalled: true,
      });

      const link = world.wallet.buildLink(ended, tenant);
      const claims = JSON.parse(Buffer.from(String(link).split(".").at(-2) ?? "", "base64url").toString());
      expect(claims.payload).toEqual({ [`${kind}Objects`]: [{ id: ended.serial, classId: CLASS_ID }] });
    });

    test("fails in words of its kind without its class", async () => {
      const pass = aPass({ serial: `${ISSUER}.${kind}-lone`, kind, object: ofObject });
      const content = {
        ...pass.content,
        classId: `${ISSUER}.none`,
        object: { ...getObject(pass), classId: `${ISSUER}.none` },
      };
      const named = { giftCard: "gift card", eventTicket: "event ticket" }[kind as string] ?? kind;
      expect(await world.create({ ...pass, content })).toEqual({
        kind: "failed",
        error: `there is no ${named} class ${ISSUER}.none: create it with POST /v1/google/classes`,
      });
    });

    test("lacks nothing that Google requires, in its class or in itself, not even after an update", () => {
      for (const name of ["issuerName", ...Object.keys(ofClass)]) {
        expect(describeFault(newClass(each, { [name]: null }))).toBe(`class_data.${name} is required`);
      }
      for (const name of Object.keys(ofObject)) {
        const lack = `pass_data.object_data.${name} is required`;
        expect(describeFault(newPass(each, { [name]: null }))).toBe(lack);
        const { content } = sound(newPass(each));
        const update = sound(acceptPassUpdate({ pass_data: { [name]: null } }));
        expect(describeFault(updatedContent(update, { ...aPass(), content }, "Acme"))).toBe(lack);
      }
      const passData = { class_type: kind, object_data: further };
      // A template contains the members that all its passes share; each pass adds the rest.
      expect(checkTemplate({ passType: "google", style: null, passData })).toBeNull();
    });
  });
}

describe("where Google tells of saves", () => {
  const OURS = "https://waybill.example.com/webhook/google-wallet";
  const offer = findKind("offer");
  const made = async (id: string, members: JsonObject = {}) => {
    const { data } = sound(newClass(offer, { id, ...members }));
    await world.wallet.classes.create(world.tenant, { kind: "offer", classId: id, data });
    return world.sandbox.resources.data("offerClass", id)?.["callbackOptions"];
  };

  test("a new class has our address, unless it has another or we have none that Google calls", async () => {
    world.callbackUrl = OURS;
    const elsewhere = { url: "https://other.example.com/saves" };
    expect(await made(`${ISSUER}.told`)).toEqual({ url: OURS });
    expect(await made(`${ISSUER}.elsewhere`, { callbackOptions: elsewhere })).toEqual(elsewhere);
    const generic = aPass({ serial: `${ISSUER}.first` });
    const content = { ...generic.content, classId: `${ISSUER}.by-pass` };
    const mine = { ...generic, content: { ...content, object: { ...getObject(generic), classId: content.classId } } };
    expect(await world.create(mine)).toMatchObject({ kind: "delivered" });
    expect(world.sandbox.resources.data("genericClass", content.classId)).toEqual({
      id: content.classId,
      callbackOptions: { url: OURS },
    });
    // Callbacks tell who has a pass; where the class has another callback address, Google's answer about the object
    // does.
    expect(await world.wallet.status(world.tenant, ready(mine))).toMatchObject({ isCalledBack: true });
    world.callbackUrl = null;
    expect(await made(`${ISSUER}.untold`)).toBeUndefined();
    expect(await world.wallet.status(world.tenant, ready(mine))).not.toHaveProperty("isCalledBack");
  });

  test("a change of a class leaves its address alone, or sets or removes it", async () => {
    const id = `${ISSUER}.changed`;
    world.callbackUrl = OURS;
    await made(id);
    world.callbackUrl = "https://new.example.com/webhook/google-wallet";
    const change = async (members: JsonObject) => {
      const accepted = sound(acceptGoogleClassChange({ class_type: "offer", class_data: members }, id));
      await world.wallet.classes.change(world.tenant, accepted);
      return world.sandbox.resources.data("offerClass", id)?.["callbackOptions"];
    };
    expect(await change({ title: "30 % off" })).toEqual({ url: OURS });
    expect(await change({ callbackOptions: { url: world.callbackUrl } })).toEqual({ url: world.callbackUrl });
    expect(await change({ callbackOptions: null })).toBeUndefined();
    world.callbackUrl = null;
    for (const url of ["http://other.example.com/saves", "x", 7]) {
      expect(describeFault(newClass(offer, { callbackOptions: { url } }))).toBe(
        "class_data.callbackOptions.url must be an https address",
      );
    }
  });
});

describe("Google's rules for members of a kind", () => {
  const flight = findKind("flight");
  const transit = findKind("transit");
  const header = (carrier: JsonObject) => ({ flightHeader: { carrier, flightNumber: "39" } });

  test("are told by the member's name", () => {
    const classes: readonly (readonly [Kind, JsonObject, string])[] = [
      [flight, { origin: {} }, "class_data.origin.airportIataCode is required"],
      [
        flight,
        { origin: { airportIataCode: "San" + "ta" } },
        "class_data.origin.airportIataCode must be three letters",
      ],
      [flight, { flightHeader: { carrier: { carrierIataCode: "LX" } } }, "class_data.flightHeader.flightNumber is"],
      [flight, header({}), "class_data.flightHeader.carrier.carrierIataCode must be given, or carrierIcaoCode"],
      [flight, header({ carrierIataCode: "LX", carrierIcaoCode: "SWR" }), "and not both"],
      [flight, { localScheduledDepartureDateTime: "2026-12-05T18:30:00Z" }, "without an offset"],
      [flight, { localBoardingDateTime: "soon" }, "class_data.localBoardingDateTime must be a date"],
      [findKind("loyalty"), { programLogo: { sourceUri: { uri: "x" } } }, "class_data.programLogo.sourceUri.uri"],
      [findKind("offer"), { title: " " }, "class_data.title must not be empty"],
      [findKind("giftCard"), { reviewStatus: "APPROVED" }, "class_data.reviewStatus must be DRAFT or UNDER_REVIEW"],
    ];
    for (const [kind, members, words] of classes) expect(describeFault(newClass(kind, members))).toContain(words);
    const at = "pass_data.object_data.";
    const objects: readonly (readonly [Kind, JsonObject, string])[] = [
      [findKind("loyalty"), { loyaltyPoints: { label: "Points" } }, `${at}loyaltyPoints.balance must be an object`],
      [
        findKind("loyalty"),
        { loyaltyPoints: { balance: { int: 1, string: "1" } } },
        "must not have both string and int",
      ],
      [
        findKind("giftCard"),
        { balance: { micros: 1.5, currencyCode: "EUR" } },
        `${at}balance.micros must be an integer`,
      ],
      [findKind("giftCard"), { balance: { micros: "1" } }, `${at}balance.currencyCode must be a string`],
      [transit, { ticketLeg: {}, ticketLegs: [] }, `${at}ticketLegs must be left out, or ticketLeg`],
      [transit, { ticketLeg: {} }, `${at}ticketLeg.originName is required where there is no originStationCode`],
      [transit, { ticketLeg: { destinationName: text("x"), originStationCode: "A" } }, "required by destinationName"],
      [transit, { ticketLegs: [{ originStationCode: "A" }] }, `${at}ticketLegs[0].departureDateTime is required`],
    ];
    for (const [kind, members, words] of objects) expect(describeFault(newPass(kind, members))).toContain(words);
  });

  test("let pass what they leave open, and words that Google has not said yet", () => {
    sound(newClass(flight, header({ carrierIcaoCode: "SWR" })));
    sound(newClass(findKind("transit"), { transitType: "AIRSHIP", logo: { privateImageId: "image-1" } }));
    sound(newClass(findKind("offer"), { redemptionChannel: "temporaryPriceReduction" }));
    const season = { validTimeInterval: { end: { date: "2027-01-01" } }, ticketLeg: { originStationCode: "A" } };
    sound(newPass(transit, season));
    sound(newPass(transit, { tripType: "DAY_PASS" }));
    sound(newPass(findKind("loyalty"), { loyaltyPoints: { balance: { shells: 7 } } }));
  });

  test("let a class be changed in part: the rest of an airport and of a flight's number stays", async () => {
    const id = `${ISSUER}.LX39`;
    const { data } = sound(newClass(flight, { id }));
    await world.wallet.classes.create(world.tenant, { kind: "flight", classId: id, data });
    const part = { origin: { gate: "B5" }, flightHeader: { flightNumber: "41" } };
    const change = sound(acceptGoogleClassChange({ class_type: "flight", class_data: part }, id));
    expect(await world.wallet.classes.change(world.tenant, change)).toMatchObject({ kind: "done" });
    expect(world.sandbox.resources.data("flightClass", id)).toMatchObject({
      origin: { airportIataCode: "SFO", gate: "B5" },
      flightHeader: { carrier: { carrierIataCode: "LX" }, flightNumber: "41" },
    });
  });

  test("an object that was inserted with a wish for the call is known again without it", async () => {
    const pass = aPass({ serial: `${ISSUER}.wish`, object: { notifyPreference: "NOTIFY_ON_UPDATE" } });
    await world.create(pass);
    const { notifyPreference: _, ...kept } = world.held(pass) ?? {};
    world.sandbox.resources.remove("genericObject", pass.serial);
    world.sandbox.resources.insert("genericObject", kept);
    world.restart();
    expect(await world.create(pass)).toMatchObject({ kind: "delivered" });
  });
});
