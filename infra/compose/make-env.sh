#!/bin/sh
# Prints the settings of compose.yaml with secrets that it makes up. Fill in what is empty; keep the file, above all MASTER_KEY:
#   (umask 077 && sh infra/compose/make-env.sh send.example.com mail.example.com >infra/compose/.env)
set -eu
[ $# -eq 2 ] || { echo "usage: make-env.sh NAME_OF_THE_API NAME_OF_THE_MAIL_SERVER" >&2; exit 2; }

secret() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '=\n'; }

cat <<EOT
# The name that tenants and readers reach, which leads to this machine. Caddy gets its certificate.
SITE_NAME=$1
# The name of the mail server: what the outgoing address is called in DNS.
MAIL_NAME=$2
# Sender of tenants without a domain of their own.
MAIL_FROM=no-reply@$1
# Networks that /dash answers, beside this machine's own containers: nobody's, until it is changed.
OPERATOR_NETWORKS=127.0.0.1/32

MASTER_KEY=$(head -c 32 /dev/urandom | base64 | tr -d '\n')
OPERATOR_TOKEN=$(secret)
WEBHOOK_SECRET=$(secret)
POSTGRES_PASSWORD=$(secret)
REDIS_PASSWORD=$(secret)
CLICKHOUSE_PASSWORD=$(secret)
GRAFANA_PASSWORD=$(secret)
EOT
