// Runs before the first paint, so that neither theme nor language flashes. Mirrors src/app/theme.ts and src/i18n/language.ts.
(function () {
  function stored(name) {
    try {
      return localStorage.getItem(name);
    } catch {
      return null; // Storage may be forbidden; the system's choice is then used.
    }
  }
  var theme = stored('weir.theme');
  var dark =
    theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.classList.toggle('dark', dark);
  var language = stored('weir.language') || navigator.language || 'en';
  document.documentElement.lang = language.toLowerCase().indexOf('zh') === 0 ? 'zh-CN' : 'en';
})();
