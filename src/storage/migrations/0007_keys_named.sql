ALTER TABLE "keys" ADD COLUMN "name" text;--> statement-breakpoint
ALTER TABLE "keys" ADD COLUMN "expires_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "keys" ADD COLUMN "last_used_at" timestamp with time zone;