ALTER TABLE "pass_registrations" ADD COLUMN "push_token" text;--> statement-breakpoint
CREATE INDEX "registrations_by_token" ON "pass_registrations" USING btree ("push_token");--> statement-breakpoint
UPDATE "pass_registrations" SET "push_token" = "pass_devices"."push_token" FROM "passes", "pass_devices" WHERE "passes"."id" = "pass_registrations"."pass_id" AND "pass_devices"."device_id" = "pass_registrations"."device_id" AND "pass_devices"."pass_type_id" = "passes"."pass_type_id";
