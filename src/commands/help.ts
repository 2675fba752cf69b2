export const HELP = `Waybill sends e-mail, WhatsApp template messages and wallet passes for many tenants, and keeps an exact
history of every delivery.

  waybill [serve]                   run the roles of this process (default: all of them, with embedded stores)
  waybill check                     check the configuration, try every address in it, and see that the stores fit
  waybill migrate                   bring PostgreSQL and ClickHouse to the current schema
  waybill adopt                     after a move: the queue in Redis belongs to the registry, the event store and
                                    the master key of this configuration from now on (stop every process first)
  waybill backup FILE-OR-FOLDER     write the data folder to one file, also while the server runs (docs/backup.md)
  waybill restore FILE-OR-FOLDER    make the data folder anew from a backup; a folder: from the newest in it
      --queued=send|fail            what becomes of the jobs that were queued when the backup was taken
  waybill tenant create NAME        create a tenant
      --id SLUG  --plan PLAN  --channels email,whatsapp,wallet  --permissions allow_raw_html  --tokens NUMBER
  waybill key create TENANT         create an API key; it is shown once
  waybill --help | --version

"waybill" is "npm start --" or "bun src/main.ts". Configuration comes from the environment; README.md lists it.
Exit codes: 0 done, 1 failure, 2 usage or configuration.`;
