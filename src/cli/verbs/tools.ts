import type { Entry, VerbEntry } from '../frame/verb.ts'

/** The formats of `mayfly helper`. */
const HELPERS = {
  aws: {
    name: 'aws',
    summary: 'credential_process of AWS SDKs',
    load: async () => (await import('../helpers/aws.ts')).verb,
  },
  gcp: {
    name: 'gcp',
    summary: 'executable credential source for Google Cloud',
    load: async () => (await import('../helpers/gcp.ts')).verb,
  },
  kubectl: {
    name: 'kubectl',
    summary: 'exec plugin for kubectl',
    load: async () => (await import('../helpers/kubectl.ts')).verb,
  },
  npm: {
    name: 'npm',
    summary: 'token helper for npm and pnpm',
    load: async () => (await import('../helpers/npm.ts')).verb,
  },
  apiKey: {
    name: 'api-key',
    summary: 'key helper for coding agents',
    load: async () => (await import('../helpers/api-key.ts')).verb,
  },
  docker: {
    name: 'docker',
    summary: 'credential helper for docker',
    load: async () => (await import('../helpers/docker.ts')).verb,
  },
  terraform: {
    name: 'terraform',
    summary: 'credentials helper for terraform',
    load: async () => (await import('../helpers/terraform.ts')).verb,
  },
  git: {
    name: 'git',
    summary: 'credential helper for git',
    load: async () => (await import('../helpers/git.ts')).verb,
  },
} satisfies Record<string, VerbEntry>

/** A helper under the words that files of other programs call it by. */
const written = (name: string, { name: format, ...rest }: VerbEntry): VerbEntry => ({
  ...rest,
  name,
  hidden: true,
  aliasOf: `helper ${format}`,
})

/** Commands for other tools. */
export const TOOL_VERBS: readonly Entry[] = [
  {
    name: 'run',
    summary: 'run a command with credentials, and revoke them when it ends',
    load: async () => (await import('../commands/run.ts')).verb,
  },
  {
    name: 'allow',
    summary: 'allow the .mayfly.yaml of a directory',
    load: async () => (await import('../commands/allow.ts')).verb,
  },
  {
    name: 'run-guard',
    summary: 'revoke the credentials of a killed run',
    hidden: true,
    load: async () => (await import('../commands/run-guard.ts')).verb,
  },
  {
    name: 'git',
    summary: 'set up git for Mayfly credentials and signing',
    verbs: [
      {
        name: 'setup',
        summary: 'let git use credentials and sign with the agent key',
        load: async () => (await import('../commands/git.ts')).setup,
      },
      {
        name: 'status',
        summary: 'show how git is set up',
        load: async () => (await import('../commands/git.ts')).status,
      },
      {
        name: 'unset',
        summary: 'remove the setup',
        load: async () => (await import('../commands/git.ts')).unset,
      },
    ],
  },
  {
    name: 'sign',
    summary: 'gpg.program for git: signs on the server',
    hidden: true,
    load: async () => (await import('../commands/sign.ts')).verb,
  },
  {
    name: 'helper',
    summary: 'answer other programs that ask for credentials',
    verbs: Object.values(HELPERS),
  },
  {
    name: 'aws',
    summary: HELPERS.aws.summary,
    hidden: true,
    verbs: [written('credential-process', HELPERS.aws)],
  },
  written('gcp-credential', HELPERS.gcp),
  written('kubectl-credential', HELPERS.kubectl),
  written('npm-token', HELPERS.npm),
  written('api-key', HELPERS.apiKey),
  written('docker-credential', HELPERS.docker),
  written('terraform-credentials', HELPERS.terraform),
  written('git-credential', HELPERS.git),
]
