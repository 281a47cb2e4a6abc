import type { Site } from '../types.ts'

/**
 * THE table of base URLs: which variable leads which program to a site. A program gets an address only where every secret that it
 * would send there is a placeholder of this credential.
 */
export interface Program {
  /** Kinds whose use it is, by the name of the use. */
  readonly kinds: readonly string[]
  readonly uses: readonly string[]
  /** Host of the upstream, for a kind of somebody else's. */
  readonly host?: string
  /** Variables with what it logs in with. */
  readonly secrets: readonly string[]
  /** It has logins on disk, too, so that it must find a placeholder among its variables. */
  readonly hasLoginOnDisk?: true
  /** Part of the path of its API: what stands before it in a rule is where the upstream is mounted. */
  readonly marker: string
  /** `root`: of the upstream as the proxy serves it. */
  readonly variables: (root: string) => Readonly<Record<string, string>>
}

const program = (
  kinds: string,
  marker: string,
  secrets: string,
  variables: Program['variables'],
  more: Partial<Program> = {},
): Program => ({
  kinds: kinds.split(' '),
  uses: ['api'],
  marker,
  secrets: secrets.split(' '),
  variables,
  ...more,
})

export const PROGRAMS: readonly Program[] = [
  program(
    'anthropic',
    '/v1',
    'ANTHROPIC_AUTH_TOKEN ANTHROPIC_API_KEY CLAUDE_CODE_OAUTH_TOKEN',
    (root) => ({ ANTHROPIC_BASE_URL: root }),
    { host: 'api.anthropic.com', hasLoginOnDisk: true },
  ),
  program(
    'openai',
    '/v1',
    'OPENAI_API_KEY OPENAI_ADMIN_KEY',
    // The second is what Aider and older SDKs read.
    (root) => ({ OPENAI_BASE_URL: `${root}/v1`, OPENAI_API_BASE: `${root}/v1` }),
    { host: 'api.openai.com' },
  ),
  program(
    'gemini',
    '/v1beta',
    'GEMINI_API_KEY GOOGLE_API_KEY',
    (root) => ({ GOOGLE_GEMINI_BASE_URL: root }),
    { host: 'generativelanguage.googleapis.com', uses: ['api', 'generativelanguage'] },
  ),
  program(
    'aws',
    '',
    'AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN',
    (root) => ({ AWS_ENDPOINT_URL: root, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'false' }),
    { uses: ['aws', 'api'] },
  ),
  program('aws', '', 'AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY', (root) => ({ AWS_ENDPOINT_URL_S3: root }), {
    uses: ['s3'],
  }),
  program('vault', '/v1', 'VAULT_TOKEN BAO_TOKEN', (root) => ({ VAULT_ADDR: root, BAO_ADDR: root }), {
    hasLoginOnDisk: true,
  }),
  program('github', '/repos', 'GITHUB_TOKEN GH_TOKEN', (root) => ({ GITHUB_API_URL: root }), {
    host: 'api.github.com',
  }),
  // glab takes no scheme and no port in GITLAB_HOST: HTTPS_PROXY leads it.
  program(
    'gitlab',
    '/api/v4',
    'GITLAB_TOKEN GITLAB_ACCESS_TOKEN GITLAB_PERSONAL_ACCESS_TOKEN OAUTH_TOKEN',
    (root) => ({
      GITLAB_URL: root,
      GITLAB_API_URL: `${root}/api/v4`,
      GITLAB_BASE_URL: `${root}/api/v4/`,
    }),
    { host: 'gitlab.com' },
  ),
  program('gitea', '/api/v1', 'GITEA_SERVER_TOKEN GITEA_SERVER_PASSWORD GITEA_TOKEN', (root) => ({
    GITEA_SERVER_URL: root,
  })),
  program(
    'grafana',
    '/api',
    'GRAFANA_AUTH GRAFANA_TOKEN GRAFANA_PASSWORD GRAFANA_SERVICE_ACCOUNT_TOKEN GRAFANA_API_KEY',
    (root) => ({ GRAFANA_URL: root, GRAFANA_SERVER: root }),
  ),
  program('elasticsearch', '/_', 'ELASTICSEARCH_API_KEY ELASTICSEARCH_PASSWORD', (root) => ({
    ELASTICSEARCH_URL: root,
    ELASTICSEARCH_ENDPOINTS: root,
  })),
  program('sonarqube', '/api', 'SONAR_TOKEN', (root) => ({ SONAR_HOST_URL: root })),
  program(
    'artifactory',
    '/artifactory',
    'JFROG_ACCESS_TOKEN JFROG_API_KEY JFROG_PASSWORD JF_ACCESS_TOKEN JF_PASSWORD',
    (root) => ({ JFROG_URL: root, JF_URL: root }),
  ),
  program('terraform-cloud', '/api/v2', 'TFE_TOKEN', (root) => ({ TFE_ADDRESS: root }), {
    hasLoginOnDisk: true,
  }),
  program(
    'cloudflare',
    '/client/v4',
    'CLOUDFLARE_API_TOKEN CLOUDFLARE_API_KEY CF_API_TOKEN',
    (root) => ({
      CLOUDFLARE_BASE_URL: `${root}/client/v4`,
      CLOUDFLARE_API_BASE_URL: `${root}/client/v4`,
    }),
    { host: 'api.cloudflare.com', hasLoginOnDisk: true },
  ),
  program('doppler', '/v3', 'DOPPLER_TOKEN', (root) => ({ DOPPLER_API_HOST: root }), {
    host: 'api.doppler.com',
    hasLoginOnDisk: true,
  }),
]

export function programsOf({ held, use }: Site): Program[] {
  const { hostname } = new URL(use.origin.replace('*.', ''))
  return PROGRAMS.filter(
    ({ kinds, uses, host }) =>
      uses.includes(use.name) && (kinds.includes(held.type) || (host !== undefined && host === hostname)),
  )
}
