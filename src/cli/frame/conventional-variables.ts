import { faultOfVariable } from './variable-names.ts'

/** A token, key or password for a program, or the name that belongs to it. */
const CREDENTIAL =
  /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:TOKEN|KEY|KEY_ID|SECRET|SECRET_ID|PASSWORD|PASSWD|PWD|PASS|USER|USERNAME|CLIENT_ID)$/

/** Where upstreams are, and what else their programs read. Each is spelt out: any `…_URL` might send a program elsewhere. */
const OTHERS: ReadonlySet<string> = new Set(
  [
    'AMQP_URL ARM_SUBSCRIPTION_ID ARM_TENANT_ID AZURE_FEDERATED_TOKEN_FILE AZURE_SUBSCRIPTION_ID AZURE_TENANT_ID',
    'AWS_DEFAULT_REGION AWS_ENDPOINT_URL AWS_ENDPOINT_URL_S3 AWS_REGION AWS_WEB_IDENTITY_TOKEN_FILE',
    'BAO_ADDR BAO_NAMESPACE VAULT_ADDR VAULT_NAMESPACE CLOUDFLARE_ACCOUNT_ID CLOUDSDK_CORE_PROJECT OPENAI_ORG_ID OPENAI_PROJECT_ID',
    'DOPPLER_CONFIG DOPPLER_PROJECT ELASTICSEARCH_ENDPOINTS ELASTICSEARCH_URL GH_HOST GITEA_SERVER_URL GITLAB_HOST GITLAB_URI',
    'GOOGLE_CLOUD_PROJECT GRAFANA_AUTH GRAFANA_SERVER GRAFANA_URL JF_URL JFROG_URL KUBECONFIG',
    'LDAPBASE LDAPBINDDN LDAPURI LDAP_BINDDN LDAP_BIND_DN LDAP_URI LDAP_URL',
    'MQTT_HOST MQTT_PORT MQTT_URL MYSQL_DATABASE MYSQL_HOST MYSQL_PORT MYSQL_TCP_PORT',
    'NATS_CREDS NATS_URL PGDATABASE PGHOST PGPASSWORD PGPORT PGSSLMODE PGUSER',
    'RABBITMQ_HOST RABBITMQ_PORT RABBITMQ_URL RABBITMQ_VHOST REDISCLI_AUTH REDIS_HOST REDIS_PORT REDIS_URL',
    'REGISTRY_URL SONAR_HOST_URL TAILSCALE_TAILNET TFE_ADDRESS TF_TOKEN_app_terraform_io TS_AUTHKEY',
  ].flatMap((line) => line.split(' ')),
)

/**
 * Whether a kind may have the command set this variable without a mapping. The server names the variables of a kind, and is not
 * trusted with the choice: this command knows them all itself.
 */
export function isConventional(name: string): boolean {
  return (CREDENTIAL.test(name) || OTHERS.has(name)) && faultOfVariable(name) === undefined
}
