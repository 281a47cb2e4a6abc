/** How the page looks to this person, kept in this browser. Empty: as the system says. */
const ATTRIBUTES = { theme: ['', 'light', 'dark'], density: ['', 'dense'] } as const
export type Preference = keyof typeof ATTRIBUTES

export function preferenceOf(name: Preference): string {
  return localStorage.getItem(`mayfly.${name}`) ?? ''
}

export function prefer(name: Preference, value: string): void {
  localStorage.setItem(`mayfly.${name}`, value)
  applyPreferences()
  // Lists measure their rows again.
  dispatchEvent(new Event('resize'))
}

export function applyPreferences(): void {
  for (const name of Object.keys(ATTRIBUTES) as Preference[]) {
    const value = preferenceOf(name)
    if ((ATTRIBUTES[name] as readonly string[]).includes(value) && value !== '')
      document.documentElement.dataset[name] = value
    else delete document.documentElement.dataset[name]
  }
}

export const rowHeight = (): number => (document.documentElement.dataset['density'] === 'dense' ? 28 : 40)
