CREATE TABLE "audit" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"operator_id" text NOT NULL,
	"operator" text COLLATE "C" NOT NULL,
	"action" text NOT NULL,
	"tenant_id" text COLLATE "C",
	"target" text,
	"detail" jsonb NOT NULL,
	"status" integer,
	"request_id" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "operators" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"role" text NOT NULL,
	"hash" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"last_used_at" timestamp with time zone,
	CONSTRAINT "operators_name_unique" UNIQUE("name"),
	CONSTRAINT "operators_hash_unique" UNIQUE("hash"),
	CONSTRAINT "operators_role_known" CHECK ("operators"."role" in ('read', 'write'))
);
--> statement-breakpoint
ALTER TABLE "registry_state" ADD COLUMN "operators_version" bigint DEFAULT 1 NOT NULL;--> statement-breakpoint
CREATE INDEX "audit_by_time" ON "audit" USING btree ("at");--> statement-breakpoint
CREATE INDEX "audit_by_tenant" ON "audit" USING btree ("tenant_id","id");--> statement-breakpoint
CREATE INDEX "audit_by_operator" ON "audit" USING btree ("operator","id");