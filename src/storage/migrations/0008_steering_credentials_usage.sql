CREATE TABLE "usage_counts" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"month" text COLLATE "C" NOT NULL,
	"api_calls" bigint NOT NULL,
	"accepted" bigint NOT NULL,
	CONSTRAINT "usage_counts_tenant_id_month_pk" PRIMARY KEY("tenant_id","month")
);
--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "paused" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "held" text[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "purged_before" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "resumed_at" jsonb DEFAULT '{}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "credentials" ADD COLUMN "created_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "credentials" ADD COLUMN "changed_at" timestamp with time zone;