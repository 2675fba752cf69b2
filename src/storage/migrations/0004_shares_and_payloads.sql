CREATE TABLE "payloads" (
	"job_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"tenant_id" text COLLATE "C" NOT NULL,
	"body" "bytea" NOT NULL
);
--> statement-breakpoint
ALTER TABLE "plans" ADD COLUMN "queued_jobs_max" integer DEFAULT 2000000 NOT NULL;--> statement-breakpoint
ALTER TABLE "plans" ADD COLUMN "queued_bytes_max" bigint DEFAULT 2147483648 NOT NULL;--> statement-breakpoint
ALTER TABLE "plans" ADD COLUMN "hold_ms" integer DEFAULT 259200000 NOT NULL;--> statement-breakpoint
ALTER TABLE "payloads" ADD CONSTRAINT "payloads_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
UPDATE "plans" SET "queued_jobs_max" = 100000, "queued_bytes_max" = 268435456 WHERE "name" = 'free';
