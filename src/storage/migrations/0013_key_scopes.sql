ALTER TABLE "keys" ADD COLUMN "scopes" text[];--> statement-breakpoint
ALTER TABLE "templates" ADD COLUMN "bytes" integer GENERATED ALWAYS AS (octet_length("body"::text)) STORED;