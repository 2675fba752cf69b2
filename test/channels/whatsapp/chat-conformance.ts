import { expect, test } from "bun:test";
import type { OpenRegistry } from "../../../src/app/open-registry.ts";
import { eventually } from "../../support/eventually.ts";
import { must } from "../../support/must.ts";
import { STALE_MS_MAX } from "../../tenants/machine.ts";

export interface ChatConformancePorts {
  registry(): OpenRegistry;
  /** Another process on the same database, which receives no notifications. */
  elsewhere(): OpenRegistry;
  /** Returns the id of a tenant of the test's own. */
  newTenant(): Promise<string>;
}

const ALIAS = {
  alias: "shipped",
  meta_name: "order_shipped_hx01",
  language_code: "es",
  params: ['it\'s {a}, "b"', "ñ"],
  header: { type: "document", link: "https://media.example/a.pdf", filename: "a.pdf" },
} as const;

/** The guarantees of the registry for aliases and for the credentials of the chat channel. */
export function chatConformance({ registry: open, elsewhere, newTenant }: ChatConformancePorts): void {
  test("an alias is read back as it was put, once per name, for its tenant alone", async () => {
    const { registry } = open();
    const [id, otherId] = [await newTenant(), await newTenant()];
    expect(await must(registry.aliases.put(id, ALIAS))).toEqual(ALIAS);
    const bare = { alias: "Shipped", meta_name: "m", language_code: null, params: [], header: null };
    expect(await must(registry.aliases.put(id, bare))).toEqual(bare);
    expect(await must(registry.aliases.one(id, "shipped"))).toEqual(ALIAS);
    expect(await must(registry.aliases.all(id))).toEqual([bare, ALIAS]);
    expect(await must(registry.aliases.all(otherId))).toEqual([]);
    const changed = { ...ALIAS, header: { type: "image", id: "77" } } as const;
    await must(registry.aliases.put(id, changed));
    expect(await must(registry.aliases.one(id, "shipped"))).toEqual(changed);
    await must(registry.aliases.delete(id, "shipped"));
    expect(await registry.aliases.one(id, "shipped")).toEqual({ kind: "missing", what: "alias" });
    expect(await registry.aliases.delete(id, "shipped")).toEqual({ kind: "missing", what: "alias" });
    expect(await registry.aliases.put("nobody", ALIAS)).toEqual({ kind: "missing", what: "tenant" });
    expect(await registry.aliases.put(id, { ...ALIAS, meta_name: "a\u0000b" })).toMatchObject({ kind: "invalid" });
  });

  test("aliases and own chat credentials are seen elsewhere within a second without any message", async () => {
    const { registry } = open();
    const id = await newTenant();
    const seen = async () => (await elsewhere().directory.byId(id))?.whatsapp;
    expect(await seen()).toEqual({ sender: null, aliases: new Map(), templates: null });
    await must(registry.aliases.put(id, ALIAS));
    const { meta_name: metaName, language_code: languageCode, params, header } = ALIAS;
    await eventually("the alias", async () => (await seen())?.aliases.has("shipped"), STALE_MS_MAX);
    expect((await seen())?.aliases.get("shipped")).toEqual({ metaName, languageCode, params, header });
    await must(
      registry.putWhatsappCredentials(id, { phone_number_id: "106540352242922", access_token: "EAAJB-token" }),
    );
    await must(registry.changeTenant(id, { allow_custom: ["email"] }));
    expect((await open().directory.byId(id))?.whatsapp.sender).toBeNull();
    await must(registry.changeTenant(id, { allow_custom: ["whatsapp"] }));
    const sender = { phoneNumberId: "106540352242922", accessToken: "EAAJB-token" };
    expect((await open().directory.byId(id))?.whatsapp.sender).toEqual(sender);
    await eventually("the sender", async () => (await seen())?.sender !== null, STALE_MS_MAX);
    await must(registry.aliases.delete(id, "shipped"));
    await eventually("its end", async () => (await seen())?.aliases.size === 0, STALE_MS_MAX);
  });

  test("a list of templates is read back, seen elsewhere, and is of the account that the credentials name", async () => {
    const { registry } = open();
    const id = await newTenant();
    const version = {
      language: "es",
      status: "APPROVED",
      category: null,
      parameter_format: null,
      header_format: null,
      header_params: [],
      body_params: ["1"],
      filled_buttons: [],
    };
    const templates = new Map([["shipped", [version]]]);
    const list = { accountId: "9", readAtMs: 1_790_000_000_123, isComplete: true, templates };
    expect(await must(registry.chatTemplates.put(id, list))).toEqual(list);
    expect(await must(registry.chatTemplates.one(id, "9"))).toEqual(list);
    expect(await must(registry.chatTemplates.one(id, "8"))).toBeNull();
    const seen = async () => (await elsewhere().directory.byId(id))?.whatsapp.templates;
    expect(await seen()).toBeNull();
    await must(registry.changeTenant(id, { allow_custom: ["whatsapp"] }));
    const credentials = { phone_number_id: "7", access_token: "t", business_account_id: "9" };
    await must(registry.putWhatsappCredentials(id, credentials));
    await eventually("the list", async () => (await seen()) !== null, STALE_MS_MAX);
    expect(await seen()).toEqual(list);
    await registry.chatTemplates.note("9", { name: "shipped", language: "es", status: "PAUSED" });
    const status = async () => (await seen())?.templates.get("shipped")?.[0]?.status;
    await eventually("its state", async () => (await status()) === "PAUSED", STALE_MS_MAX);
    const other = { ...list, accountId: "8" };
    await must(registry.chatTemplates.put(id, other));
    expect(await must(registry.chatTemplates.one(id, "9"))).toBeNull();
    expect(await registry.chatTemplates.put("nobody", other)).toEqual({ kind: "missing", what: "tenant" });
  });

  test("all tenants' own numbers are read at once, those that are used", async () => {
    const { registry } = open();
    const [id, barredId] = [await newTenant(), await newTenant()];
    for (const each of [id, barredId]) {
      await must(registry.putWhatsappCredentials(each, { phone_number_id: `7${each.length}`, access_token: "t" }));
    }
    await must(registry.changeTenant(id, { allow_custom: ["whatsapp"] }));
    const numbers = await registry.ownNumbers();
    expect([numbers.get(id), numbers.get(barredId)]).toEqual([`7${id.length}`, undefined]);
  });
}
