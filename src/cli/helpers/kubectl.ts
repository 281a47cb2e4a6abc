import { isObject, parseJson } from '../../domain/formats/json.ts'
import { usage } from '../frame/failure.ts'
import { choice, text } from '../frame/options.ts'
import { endOf, type HeldCredential } from '../session/held-credential.ts'
import { givenOf } from '../session/session.ts'
import { RENEW_BEFORE_MS, toTimestamp } from '../tools/held.ts'
import { needPart, partOf, singleSecret } from '../tools/parts.ts'
import { helperVerb } from './helper-verb.ts'

const GROUP = 'client.authentication.k8s.io/'
const VERSIONS = ['v1', 'v1beta1'] as const

export const verb = helperVerb({
  name: 'kubectl',
  description:
    'Answers as an exec plugin of kubectl and other Kubernetes clients, with the secret of the backend as bearer token or with its client_certificate and client_key. Uses a cache while the credential lives long enough.',
  printed: 'print a kubeconfig with this user instead of a credential',
  options: {
    user: text('<name>', 'name of the user with --print', { default: 'mayfly' }),
    apiVersion: choice('<version>', 'with --print; kubectl before 1.22 supports only v1beta1', VERSIONS, {
      default: 'v1',
    }),
  },
  examples: {
    'mayfly helper kubectl --backend kube --print > ~/.kube/mayfly.yaml':
      'the user "mayfly", for KUBECONFIG=~/.kube/config:~/.kube/mayfly.yaml',
    'mayfly helper kubectl --backend kube': 'what kubectl runs',
  },
  json: 'ExecCredential of Kubernetes, with or without --json: {apiVersion, kind, status: {expirationTimestamp, token} or {expirationTimestamp, clientCertificateData, clientKeyData}}; with --print a kubeconfig',
  renewBeforeMs: RENEW_BEFORE_MS.command,
  answer: ({ env }) => {
    const apiVersion = versionOf(givenOf(env['KUBERNETES_EXEC_INFO']))
    return (credential) => ({ apiVersion, kind: 'ExecCredential', status: statusOf(credential) })
  },
  configure: async ({ out }, call, { user, apiVersion }) => {
    const config = configWith(user, apiVersion, call)
    const { stringify } = await import('yaml')
    await out.show(config, () => stringify(config, { lineWidth: 0 }).trimEnd())
  },
})

/** kubectl accepts only the version it asked for. */
function versionOf(info: string | undefined): string {
  if (info === undefined) return `${GROUP}${VERSIONS[0]}`
  const given = parseJson(info)
  const asked = isObject(given) ? given : {}
  const known = VERSIONS.map((version) => GROUP + version).find((one) => one === asked['apiVersion'])
  if (known !== undefined && asked['kind'] === 'ExecCredential') return known
  throw usage(
    'KUBERNETES_EXEC_INFO asks for an unsupported ExecCredential.',
    `Set apiVersion under "exec" in the kubeconfig to ${GROUP}${VERSIONS[0]}.`,
  )
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
