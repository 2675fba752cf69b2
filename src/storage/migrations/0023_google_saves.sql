CREATE TABLE "pass_callbacks" (
	"pass_id" text COLLATE "C" NOT NULL,
	"nonce" text COLLATE "C" NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	CONSTRAINT "pass_callbacks_pass_id_nonce_pk" PRIMARY KEY("pass_id","nonce")
);
--> statement-breakpoint
CREATE TABLE "pass_saves" (
	"pass_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"holders" integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE "pass_callbacks" ADD CONSTRAINT "pass_callbacks_pass_id_passes_id_fk" FOREIGN KEY ("pass_id") REFERENCES "public"."passes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pass_saves" ADD CONSTRAINT "pass_saves_pass_id_passes_id_fk" FOREIGN KEY ("pass_id") REFERENCES "public"."passes"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "passes_google_by_serial" ON "passes" USING btree ("serial") WHERE "passes"."type" = 'google' and "passes"."state" <> 'failed';