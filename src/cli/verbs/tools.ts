import type { Entry } from '../frame/verb.ts'

/** What other tools call, and what runs them. */
export const TOOL_VERBS: readonly Entry[] = [
  {
    name: 'run',
    summary: 'run a command with credentials, and end them with it',
    load: async () => (await import('../commands/run.ts')).verb,
  },
  {
    name: 'run-guard',
    summary: 'revokes what a killed run has left',
    hidden: true,
    load: async () => (await import('../commands/run-guard.ts')).verb,
  },
  {
    name: 'git',
    summary: 'clone, push and sign with git',
    verbs: [
      {
        name: 'setup',
        summary: 'make git use our credentials and sign with our key',
        load: async () => (await import('../commands/git.ts')).setup,
      },
      {
        name: 'status',
        summary: 'say how git is set up',
        load: async () => (await import('../commands/git.ts')).status,
      },
      {
        name: 'unset',
        summary: 'take the set-up away',
        load: async () => (await import('../commands/git.ts')).unset,
      },
    ],
  },
  {
    name: 'git-credential',
    summary: 'credential helper of git',
    load: async () => (await import('../commands/git-credential.ts')).verb,
  },
  {
    name: 'sign',
    summary: 'gpg.program of git: signs at the server',
    hidden: true,
    load: async () => (await import('../commands/sign.ts')).verb,
  },
  {
    name: 'aws',
    summary: 'credential_process and endpoint for AWS SDKs',
    verbs: [
      {
        name: 'credential-process',
        summary: 'credentials as an AWS profile wants them',
        load: async () => (await import('../commands/aws.ts')).credentialProcess,
      },
      {
        name: 'serve',
        summary: 'run a command with a container endpoint',
        load: async () => (await import('../commands/aws-run.ts')).serve,
      },
      {
        name: 'web-identity',
        summary: 'run a command that takes a role by a token file',
        load: async () => (await import('../commands/aws-run.ts')).webIdentity,
      },
    ],
  },
  {
    name: 'gcp-credential',
    summary: 'executable source of Google Cloud credentials',
    load: async () => (await import('../commands/gcp-credential.ts')).verb,
  },
  {
    name: 'kubectl-credential',
    summary: 'exec plugin of kubectl',
    load: async () => (await import('../commands/kubectl-credential.ts')).verb,
  },
  {
    name: 'docker',
    summary: 'pull and push with docker',
    verbs: [
      {
        name: 'setup',
        summary: 'make docker get its credentials for a registry from a backend',
        load: async () => (await import('../commands/docker.ts')).setup,
      },
      {
        name: 'ls',
        summary: 'list what is set up',
        load: async () => (await import('../commands/docker.ts')).list,
      },
      {
        name: 'unset',
        summary: 'take the set-up away',
        load: async () => (await import('../commands/docker.ts')).unset,
      },
    ],
  },
  {
    name: 'docker-credential',
    summary: 'credential helper of docker',
    load: async () => (await import('../commands/docker-credential.ts')).verb,
  },
  {
    name: 'npm-token',
    summary: 'token helper of npm and pnpm',
    load: async () => (await import('../commands/npm-token.ts')).verb,
  },
  {
    name: 'terraform',
    summary: 'tokens for terraform',
    verbs: [
      {
        name: 'setup',
        summary: 'make terraform get its credentials for a host from a backend',
        load: async () => (await import('../commands/terraform.ts')).setup,
      },
      {
        name: 'ls',
        summary: 'list what is set up',
        load: async () => (await import('../commands/terraform.ts')).list,
      },
      {
        name: 'unset',
        summary: 'take the set-up away',
        load: async () => (await import('../commands/terraform.ts')).unset,
      },
    ],
  },
  {
    name: 'terraform-credentials',
    summary: 'credentials helper of terraform',
    load: async () => (await import('../commands/terraform-credentials.ts')).verb,
  },
  {
    name: 'api-key',
    summary: 'key helper of coding agents',
    load: async () => (await import('../commands/api-key.ts')).verb,
  },
]
