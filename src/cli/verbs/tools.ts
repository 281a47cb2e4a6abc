import { type Entry, entry, hidden, type VerbEntry } from '../frame/verb.ts'

const git = () => import('../commands/git.ts')

/** The formats of `mayfly helper`. */
const HELPERS = {
  aws: entry('aws', 'credential_process of AWS SDKs', () => import('../helpers/aws.ts')),
  gcp: entry('gcp', 'executable credential source for Google Cloud', () => import('../helpers/gcp.ts')),
  kubectl: entry('kubectl', 'exec plugin for kubectl', () => import('../helpers/kubectl.ts')),
  npm: entry('npm', 'token helper for npm and pnpm', () => import('../helpers/npm.ts')),
  apiKey: entry('api-key', 'key helper for coding agents', () => import('../helpers/api-key.ts')),
  docker: entry('docker', 'credential helper for docker', () => import('../helpers/docker.ts')),
  terraform: entry('terraform', 'credentials helper for terraform', () => import('../helpers/terraform.ts')),
  git: entry('git', 'credential helper for git', () => import('../helpers/git.ts')),
} satisfies Record<string, VerbEntry>

/** A helper under the words that files of other programs call it by. */
const written = (name: string, helper: VerbEntry): VerbEntry =>
  hidden({ ...helper, name, aliasOf: `helper ${helper.name}` })

/** Commands for other tools. */
export const TOOL_VERBS: readonly Entry[] = [
  entry(
    'run',
    'run a command with credentials, and revoke them when it ends',
    () => import('../commands/run.ts'),
  ),
  entry('allow', 'allow the .mayfly.yaml of a directory', () => import('../commands/allow.ts')),
  hidden(
    entry('run-guard', 'revoke the credentials of a killed run', () => import('../commands/run-guard.ts')),
  ),
  entry(
    'proxy',
    'hold the secrets of a run, for programs that get none',
    () => import('../commands/proxy.ts'),
  ),
  hidden(entry('run-proxy', 'the proxy of a run', () => import('../commands/run-proxy.ts'))),
  {
    name: 'git',
    summary: 'set up git for Mayfly credentials and signing',
    verbs: [
      entry('setup', 'let git use credentials and sign with the agent key', git, 'setup'),
      entry('status', 'show how git is set up', git, 'status'),
      entry('unset', 'remove the setup', git, 'unset'),
    ],
  },
  hidden(entry('sign', 'gpg.program for git: signs on the server', () => import('../commands/sign.ts'))),
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
