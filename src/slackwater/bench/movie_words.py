"""What the movie database is made of: kinds, roles, countries, genres and keywords, with the shares of each."""

KINDS = ("movie", "tv series", "tv movie", "video movie", "tv mini series", "video game", "episode")
KIND_SHARES = (0.45, 0.06, 0.06, 0.08, 0.02, 0.01, 0.32)
COMPANY_TYPES = ("distributors", "production companies", "special effects companies", "miscellaneous companies")
ROLES = ("actor", "actress", "producer", "writer", "cinematographer", "composer", "costume designer", "director",
         "editor", "miscellaneous crew", "production designer", "guest")  # fmt: skip
ROLE_SHARES = (0.34, 0.22, 0.1, 0.08, 0.04, 0.03, 0.02, 0.06, 0.04, 0.04, 0.02, 0.01)
LINKS = ("follows", "followed by", "remake of", "remade as", "references", "referenced in", "spoofs", "spoofed in",
         "features", "featured in", "spin off from", "spin off", "version of", "similar to", "edited into",
         "edited from", "alternate language version of", "unknown link")  # fmt: skip
CAST_STATES = ("cast", "crew", "complete", "complete+verified")
COUNTRIES = ("USA", "UK", "France", "Germany", "Japan", "India", "Italy", "Spain", "Sweden", "Canada")
COUNTRY_CODES = ("[us]", "[gb]", "[fr]", "[de]", "[jp]", "[in]", "[it]", "[es]", "[se]", "[ca]")
LANGUAGES = ("English", "English", "French", "German", "Japanese", "Hindi", "Italian", "Spanish", "Swedish", "English")
COUNTRY_SHARES = (0.44, 0.12, 0.09, 0.08, 0.07, 0.07, 0.04, 0.04, 0.03, 0.02)
GENRES = ("Drama", "Comedy", "Documentary", "Action", "Thriller", "Horror", "Romance", "Crime", "Adventure", "Sci-Fi",
          "Animation", "Family")  # fmt: skip
GENRE_SHARES = (0.24, 0.2, 0.13, 0.09, 0.07, 0.06, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01)
GENRE_KEYWORDS = ("death", "friendship", "interview", "explosion", "conspiracy", "blood", "love", "murder", "treasure",
                  "superhero", "talking-animal", "dog")  # fmt: skip
KEYWORDS = (*GENRE_KEYWORDS, "sequel", "character-name-in-title", "based-on-novel", "revenge", "independent-film",
            "female-nudity", "marvel-comics", "hospital", "vampire", "war")  # fmt: skip
INFO_TYPES = {1: "runtimes", 3: "genres", 4: "languages", 8: "countries", 16: "release dates", 17: "trivia",
              19: "mini biography", 20: "birth notes", 21: "birth date", 99: "votes distribution", 100: "votes",
              101: "rating", 105: "budget", 112: "top 250 rank"}  # fmt: skip
