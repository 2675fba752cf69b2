# Postfix as Waybill's way out, with the settings of infra/mail. Build it from the root of the repository:
#   docker build --file infra/docker/postfix.Dockerfile --tag waybill-postfix:1.0.0 .
# The log is in /var/log/postfix, for a process of the role `maillog`; the queue in /var/spool/postfix. Both want a volume.

FROM debian:13.8-slim
LABEL org.opencontainers.image.title="Postfix for Waybill" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.licenses="MIT"
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends ca-certificates curl postfix \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home --shell /usr/sbin/nologin waybill-mail \
 && install --directory --mode=0755 /var/log/postfix /etc/waybill
COPY infra/mail/main.cf infra/mail/master.cf infra/mail/bounce-domains infra/mail/slow-domains \
     infra/mail/machine-recipients infra/mail/private-answers /etc/postfix/
COPY --chmod=0755 infra/mail/rotate-log infra/mail/report-mail /usr/local/lib/waybill/
COPY --chmod=0755 infra/docker/start-postfix /usr/local/bin/start-postfix
VOLUME ["/var/spool/postfix", "/var/log/postfix"]
EXPOSE 25 2525
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 CMD ["postfix", "status"]
ENTRYPOINT ["start-postfix"]
