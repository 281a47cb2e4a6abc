import type { SsoProvider } from '../../domain/people/sso.ts'
import type { SsoProviders } from '../parts.ts'

/** The providers of the configuration in force. */
export function createSsoProviders(): SsoProviders {
  let all: readonly SsoProvider[] = []
  return {
    setProviders: (providers) => {
      all = providers
    },
    names: () => all.map(({ name }) => name),
    find: (name) => all.find((one) => one.name === name),
  }
}
