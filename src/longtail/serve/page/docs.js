// The reference of the API: Swagger UI with the token of this tab.

globalThis.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  validatorUrl: null, // it would send the description elsewhere
  requestInterceptor: (request) => {
    const token = sessionStorage.getItem("token");
    if (token && !request.headers.Authorization) request.headers.Authorization = `Bearer ${token}`;
    return request;
  },
});
