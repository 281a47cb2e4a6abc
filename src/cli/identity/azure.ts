import { parseJson } from '../../domain/formats/json.ts'
import type { Context } from '../frame/verb.ts'
import { ask, isAnswered } from './ask.ts'
import { given, type IdentitySource, noToken } from './source.ts'

const TITLE = 'Azure'
const HEADERS = { metadata: 'true' }

/**
 * A token of the machine's managed identity
 * (learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token). Its audience must be an
 * application that is registered with Entra. AZURE_CLIENT_ID chooses among several identities, and
 * AZURE_POD_IDENTITY_AUTHORITY_HOST names another address, as for Microsoft's libraries.
 */
export const azure: IdentitySource = {
  name: 'azure',
  title: TITLE,
  needs: 'the metadata service of Azure at 169.254.169.254',
  isHere: (context) => given(context, 'AZURE_POD_IDENTITY_AUTHORITY_HOST') !== undefined,
  answers: (context, signal) => {
    const path = '/metadata/instance/compute/azEnvironment?api-version=2021-02-01&format=text'
    const question = { url: `${baseOf(context)}${path}`, headers: HEADERS, signal }
    return isAnswered(context, question, ({ text }) => /^Azure\w{1,40}$/.test(text))
  },
  workload: (context) => JSON.stringify([baseOf(context), given(context, 'AZURE_CLIENT_ID')]),
  token: async (context, audience, { signal }) => {
    const query = new URLSearchParams({ 'api-version': '2018-02-01', resource: audience })
    const client = given(context, 'AZURE_CLIENT_ID')
    if (client !== undefined) query.set('client_id', client)
    const url = `${baseOf(context)}/metadata/identity/oauth2/token?${query}`
    const { text } = await ask(context, TITLE, { url, headers: HEADERS, signal })
    const { access_token: token } = (parseJson(text) ?? {}) as { access_token?: unknown }
    if (typeof token !== 'string') throw noToken(TITLE, 'its answer holds none.')
    return token
  },
}

function baseOf(context: Context): string {
  const base = given(context, 'AZURE_POD_IDENTITY_AUTHORITY_HOST') ?? 'http://169.254.169.254'
  return base.replace(/\/+$/, '')
}
