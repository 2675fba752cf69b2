CREATE TABLE "sender_domains" (
	"domain" text COLLATE "C" PRIMARY KEY NOT NULL,
	"status" text NOT NULL,
	"selector" text NOT NULL,
	"private_key" text NOT NULL,
	"public_key" text NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"checked_at" timestamp with time zone,
	"findings" jsonb NOT NULL
);
