import type { Entry } from '../frame/verb.ts'

/** Commands for other tools. */
export const TOOL_VERBS: readonly Entry[] = [
  {
    name: 'run',
    summary: 'run a command with credentials, and revoke them when it ends',
    load: async () => (await import('../commands/run.ts')).verb,
  },
  {
    name: 'allow',
    summary: 'allow the mayfly.yaml of a directory',
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
    name: 'git-credential',
    summary: 'credential helper for git',
    load: async () => (await import('../commands/git-credential.ts')).verb,
  },
  {
    name: 'sign',
    summary: 'gpg.program for git: signs on the server',
    hidden: true,
    load: async () => (await import('../commands/sign.ts')).verb,
  },
  {
    name: 'aws',
    summary: 'credential_process and endpoint for AWS SDKs',
    verbs: [
      {
        name: 'credential-process',
        summary: 'print credentials for an AWS profile (credential_process)',
        load: async () => (await import('../commands/aws.ts')).credentialProcess,
      },
      {
        name: 'serve',
        summary: 'run a command with a container endpoint',
        load: async () => (await import('../commands/aws-run.ts')).serve,
      },
      {
        name: 'web-identity',
        summary: 'run a command that assumes a role with a token file',
        load: async () => (await import('../commands/aws-run.ts')).webIdentity,
      },
    ],
  },
  {
    name: 'gcp-credential',
    summary: 'executable credential source for Google Cloud',
    load: async () => (await import('../commands/gcp-credential.ts')).verb,
  },
  {
    name: 'kubectl-credential',
    summary: 'exec plugin for kubectl',
    load: async () => (await import('../commands/kubectl-credential.ts')).verb,
  },
  {
    name: 'docker',
    summary: 'set up docker to pull and push',
    verbs: [
      {
        name: 'setup',
        summary: 'let docker get credentials for a registry from a backend',
        load: async () => (await import('../commands/docker.ts')).setup,
      },
      {
        name: 'ls',
        summary: 'list the setup',
        load: async () => (await import('../commands/docker.ts')).list,
      },
      {
        name: 'unset',
        summary: 'remove the setup',
        load: async () => (await import('../commands/docker.ts')).unset,
      },
    ],
  },
  {
    name: 'docker-credential',
    summary: 'credential helper for docker',
    load: async () => (await import('../commands/docker-credential.ts')).verb,
  },
  {
    name: 'npm-token',
    summary: 'token helper for npm and pnpm',
    load: async () => (await import('../commands/npm-token.ts')).verb,
  },
  {
    name: 'terraform',
    summary: 'set up terraform to get tokens',
    verbs: [
      {
        name: 'setup',
        summary: 'let terraform get credentials for a host from a backend',
        load: async () => (await import('../commands/terraform.ts')).setup,
      },
      {
        name: 'ls',
        summary: 'list the setup',
        load: async () => (await import('../commands/terraform.ts')).list,
      },
      {
        name: 'unset',
        summary: 'remove the setup',
        load: async () => (await import('../commands/terraform.ts')).unset,
      },
    ],
  },
  {
    name: 'terraform-credentials',
    summary: 'credentials helper for terraform',
    load: async () => (await import('../commands/terraform-credentials.ts')).verb,
  },
  {
    name: 'api-key',
    summary: 'key helper for coding agents',
    load: async () => (await import('../commands/api-key.ts')).verb,
  },
]
