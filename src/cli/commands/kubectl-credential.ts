import { usage } from '../frame/failure.ts'
import { choice, flag, text } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import { endOf, type HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { givenOf } from '../session/session.ts'
import { callOf } from '../tools/call-line.ts'
import { heldAnswer, RENEW_BEFORE_MS, toTimestamp } from '../tools/held.ts'
import { needPart, partOf, singleSecret } from '../tools/parts.ts'
import { REQUEST_OPTIONS, requestFlags, requestOf } from '../tools/request.ts'

const GROUP = 'client.authentication.k8s.io/'
const VERSIONS = ['v1', 'v1beta1'] as const

export const verb = defineVerb({
  description:
    'Answers as an exec plugin of kubectl and other Kubernetes clients, with the secret of the backend as bearer token or with its client_certificate and client_key. Uses a cache while the credential lives long enough.',
  options: {
    ...REQUEST_OPTIONS,
    printConfig: flag('print a kubeconfig with this user instead of a credential'),
    user: text('<name>', 'name of the user with --print-config', { default: 'mayfly' }),
    apiVersion: choice(
      '<version>',
      'with --print-config; kubectl before 1.22 supports only v1beta1',
      VERSIONS,
      { default: 'v1' },
    ),
  },
  examples: [
    {
      command: 'mayfly kubectl-credential --backend kube --print-config > ~/.kube/mayfly.yaml',
      about: 'the user "mayfly", for KUBECONFIG=~/.kube/config:~/.kube/mayfly.yaml',
    },
    { command: 'mayfly kubectl-credential --backend kube', about: 'what kubectl runs' },
  ],
  json: 'ExecCredential of Kubernetes, with or without --json: {apiVersion, kind, status: {expirationTimestamp, token} or {expirationTimestamp, clientCertificateData, clientKeyData}}; with --print-config a kubeconfig',
  exits: [3, 4, 5],
  run: async (context, options) => {
    const request = requestOf(options)
    if (options.printConfig === true) {
      const session = await openAgentSession(context)
      const call = callOf(context, session, ['kubectl-credential', ...requestFlags(options)])
      const config = configWith(options.user, options.apiVersion, call)
      const { stringify } = await import('yaml')
      await context.out.show(config, () => stringify(config, { lineWidth: 0 }).trimEnd())
      return
    }
    const apiVersion = versionOf(givenOf(context.env['KUBERNETES_EXEC_INFO']))
    const session = await openAgentSession(context)
    const status = await heldAnswer(context, session, request, RENEW_BEFORE_MS.command, statusOf)
    await context.out.json({ apiVersion, kind: 'ExecCredential', status })
  },
})

/** kubectl accepts only the version it asked for. */
function versionOf(info: string | undefined): string {
  if (info === undefined) return `${GROUP}${VERSIONS[0]}`
  const asked = readInfo(info)
  const known = VERSIONS.map((version) => GROUP + version).find((one) => one === asked.apiVersion)
  if (known !== undefined && asked.kind === 'ExecCredential') return known
  throw usage(
    'KUBERNETES_EXEC_INFO asks for an unsupported ExecCredential.',
    `Set apiVersion under "exec" in the kubeconfig to ${GROUP}${VERSIONS[0]}.`,
  )
}

function readInfo(text: string): { apiVersion?: unknown; kind?: unknown } {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

const TOOL = 'Kubernetes'

function statusOf(credential: HeldCredential): Record<string, string> {
  const expirationTimestamp = toTimestamp(endOf(credential))
  if (partOf(credential, 'client_certificate') === undefined)
    return { expirationTimestamp, token: singleSecret(credential, TOOL) }
  return {
    expirationTimestamp,
    clientCertificateData: needPart(credential, 'client_certificate', TOOL),
    clientKeyData: needPart(credential, 'client_key', TOOL),
  }
}

function configWith(user: string, version: string, [command, ...args]: readonly string[]): object {
  const exec = { apiVersion: GROUP + version, command, args, interactiveMode: 'Never' }
  return { apiVersion: 'v1', kind: 'Config', users: [{ name: user, user: { exec } }] }
}
