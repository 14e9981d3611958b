/** Copies a text; whether it worked. The clipboard API exists on https only, so plain http uses a selection. */
export async function copyText(text: string): Promise<boolean> {
  if (window.isSecureContext && 'clipboard' in navigator) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Refused by the user or the browser: try the older way.
    }
  }
  // Inside the open dialog if there is one: its focus trap would take the focus away from anywhere else.
  const host = document.activeElement?.closest('[role="dialog"]') ?? document.body;
  const area = document.createElement('textarea');
  area.value = text;
  area.readOnly = true;
  area.style.position = 'fixed';
  area.style.opacity = '0';
  host.append(area);
  const focused = document.activeElement as HTMLElement | null;
  area.select();
  try {
    return document.execCommand('copy');
  } finally {
    area.remove();
    focused?.focus();
  }
}
