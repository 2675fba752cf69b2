ALTER TABLE "credentials" ADD COLUMN "created_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "credentials" ADD COLUMN "changed_at" timestamp with time zone;