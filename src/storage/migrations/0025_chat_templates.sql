CREATE TABLE "chat_templates" (
	"tenant_id" text COLLATE "C" NOT NULL,
	"account_id" text COLLATE "C" NOT NULL,
	"read_at" timestamp (3) with time zone NOT NULL,
	"is_complete" boolean NOT NULL,
	"templates" jsonb NOT NULL,
	CONSTRAINT "chat_templates_tenant_id_account_id_pk" PRIMARY KEY("tenant_id","account_id")
);
--> statement-breakpoint
ALTER TABLE "chat_templates" ADD CONSTRAINT "chat_templates_tenant_id_tenants_id_fk" FOREIGN KEY ("tenant_id") REFERENCES "public"."tenants"("id") ON DELETE cascade ON UPDATE no action;