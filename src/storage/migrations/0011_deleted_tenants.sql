ALTER TABLE "tenants" ADD COLUMN "deleted_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "tenants" ADD COLUMN "removed_at" timestamp with time zone;--> statement-breakpoint
CREATE INDEX "tenants_leaving" ON "tenants" USING btree ("deleted_at") WHERE "tenants"."deleted_at" is not null and "tenants"."removed_at" is null;