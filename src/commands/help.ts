export const HELP = `Waybill sends e-mail, WhatsApp template messages and wallet passes for many tenants, and keeps an exact
history of every delivery.

  waybill [serve]                   run the roles of this process (default: all of them, with embedded stores)
  waybill check                     check the configuration and try every address in it
  waybill migrate                   bring PostgreSQL and ClickHouse to the current schema
  waybill tenant create NAME        create a tenant
      --id SLUG  --plan PLAN  --channels email,whatsapp,wallet  --permissions allow_raw_html  --tokens NUMBER
  waybill key create TENANT         create an API key; it is shown once
  waybill --help | --version

"waybill" is "npm start --" or "bun src/main.ts". Configuration comes from the environment; README.md lists it.
Exit codes: 0 done, 1 failure, 2 usage or configuration.`;
